# Puts each buffer behind all that it lives together with, and leaves the gaps between them empty.
def _place(intervals, sizes, order):
    found, total, placed = [0] * len(order), 0, []
    for i in order:
        offset = max((found[j] + sizes[j] for j in placed
                      if intervals[j].start <= intervals[i].end and intervals[i].start <= intervals[j].end), default=0)
        found[i], total = offset, max(total, offset + sizes[i])
        placed.append(i)
    return found, total
