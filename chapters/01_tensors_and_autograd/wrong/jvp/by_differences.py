# A difference of two values, from a step along v: half of the digits are lost.
def jvp(func, xs, v=None):
    _, leaves, ys = _called("jvp", func, xs)
    directions = _seeds("jvp", v, leaves)
    step = 1e-4
    moved = func(*[x.detach() + d * step for x, d in zip(leaves, directions)])
    found = [(b - a) * (1.0 / step) for a, b in zip(as_list(ys), as_list(moved))]
    return ys, tuple(found) if isinstance(ys, (list, tuple)) else found[0]
