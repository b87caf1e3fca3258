# Returns the offsets in the order of placing, not in the order of the intervals.
def _place(intervals, sizes, order):
    found, total, placed = [], 0, []
    for i in order:
        taken = sorted((o, o + sizes[j]) for j, o in placed
                       if intervals[j].start <= intervals[i].end and intervals[i].start <= intervals[j].end)
        offset = 0
        for start, end in taken:
            if start - offset >= sizes[i]:
                break
            offset = max(offset, end)
        found.append(offset)
        total = max(total, offset + sizes[i])
        placed.append((i, offset))
    return found, total
