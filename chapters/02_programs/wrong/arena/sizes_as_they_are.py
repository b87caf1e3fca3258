# Reckons with the sizes before rounding: the next buffer starts in the middle of a cache line.
def _place(intervals, sizes, order):
    found, total, placed = [0] * len(order), 0, []
    for i in order:
        size = intervals[i].size
        taken = sorted((found[j], found[j] + intervals[j].size) for j in placed
                       if intervals[j].start <= intervals[i].end and intervals[i].start <= intervals[j].end)
        offset = 0
        for start, end in taken:
            if start - offset >= size:
                break
            offset = max(offset, end)
        found[i], total = offset, max(total, offset + size)
        placed.append(i)
    return found, total
