# One buffer behind the other: right, and as large as if no memory were ever given back.
def _place(intervals, sizes, order):
    found, total = [0] * len(order), 0
    for i in order:
        found[i], total = total, total + sizes[i]
    return found, total
