# Counts the stretched axes in the operand's own shape, not in the shape that is summed.
def axes_to_sum(shape, target):
    lead = len(shape) - len(target)
    return tuple(range(lead)) + tuple(i for i, d in enumerate(target) if d == 1 and shape[lead + i] != 1 and i >= lead)
