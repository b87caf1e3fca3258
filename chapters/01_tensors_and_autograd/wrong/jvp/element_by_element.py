# The gradient of the sum of the results, times v: right only where result i depends on element i alone.
def jvp(func, xs, v=None):
    _, leaves, ys = _called("jvp", func, xs)
    directions = _seeds("jvp", v, leaves)
    found = _grad_or_zeros([total(y) for y in as_list(ys)], leaves)
    return ys, found[0] * directions[0]
