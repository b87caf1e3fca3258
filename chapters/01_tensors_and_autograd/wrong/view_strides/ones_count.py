# Compares the stride of a dimension of size 1 as well, which no element is ever a step along.
def view_strides(shape, strides, target):
    if not prod(shape):
        return row_major(target)
    runs = []
    for n, s in zip(shape, strides):
        if runs and runs[-1][1] == n * s:
            runs[-1] = (runs[-1][0] * n, s)
        else:
            runs.append((n, s))
    found, left, s = [], 1, 1
    for n in reversed(target):
        if n != 1 and left == 1:
            left, s = runs.pop()
        if left % n:
            return None
        found.append(s)
        left, s = left // n, s * n
    return tuple(reversed(found))
