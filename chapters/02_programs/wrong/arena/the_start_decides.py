# Looks only whether the new buffer begins while another one lives; one that is placed already may begin later.
def _place(intervals, sizes, order):
    found, total, placed = [0] * len(order), 0, []
    for i in order:
        taken = sorted((o, o + sizes[j]) for j, o in placed
                       if intervals[j].start <= intervals[i].start <= intervals[j].end)
        offset = 0
        for start, end in taken:
            if start - offset >= sizes[i]:
                break
            offset = max(offset, end)
        found[i] = offset
        total = max(total, offset + sizes[i])
        placed.append((i, offset))
    return found, total
