# Sums over the dimensions of size 1 that were stretched, and forgets the new leading ones.
def axes_to_sum(shape, target):
    lead = len(shape) - len(target)
    return tuple(lead + i for i, d in enumerate(target) if d == 1)
