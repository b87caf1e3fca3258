# Lets a dimension begin in one run of elements and end in the next: of two columns out of three, say.
def view_strides(shape, strides, target):
    runs = [(n, s) for n, s in zip(shape, strides) if n != 1]
    found, left, s = [], 1, 1
    for n in reversed(target):
        if n != 1 and left <= 1 and runs:
            left, s = runs.pop()
        found.append(s)
        left, s = left // n if n else 1, s * n
    return tuple(reversed(found))
