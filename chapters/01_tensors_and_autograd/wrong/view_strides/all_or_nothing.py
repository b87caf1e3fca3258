# Finds a view only where one step leads through all elements; but a dimension can be split by itself.
def view_strides(shape, strides, target):
    sizes = [(n, s) for n, s in zip(shape, strides) if n != 1]
    if not sizes or not prod(shape):
        return row_major(target)
    if any(a[1] != b[0] * b[1] for a, b in zip(sizes, sizes[1:])):
        return None
    return tuple(s * sizes[-1][1] for s in row_major(target))
