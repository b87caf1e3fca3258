# Takes the last position of a buffer for free: the operation there still reads it while it writes the other.
def _place(intervals, sizes, order):
    found, total, placed = [0] * len(order), 0, []
    for i in order:
        taken = sorted((found[j], found[j] + sizes[j]) for j in placed
                       if intervals[j].start < intervals[i].end and intervals[i].start < intervals[j].end)
        offset = 0
        for start, end in taken:
            if start - offset >= sizes[i]:
                break
            offset = max(offset, end)
        found[i], total = offset, max(total, offset + sizes[i])
        placed.append(i)
    return found, total
