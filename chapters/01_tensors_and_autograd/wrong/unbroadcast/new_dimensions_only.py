# Sums over the new leading dimensions, and forgets those of size 1 that were stretched.
def axes_to_sum(shape, target):
    return tuple(range(len(shape) - len(target)))
