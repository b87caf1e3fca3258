# Aligns the shapes at their left ends; broadcasting aligns them at their right ends.
def axes_to_sum(shape, target):
    padded = tuple(target) + (1,) * (len(shape) - len(target))
    return tuple(i for i, (s, t) in enumerate(zip(shape, padded)) if t == 1)
