# Forgets the direction: the second gradient is weighted with ones.
def jvp(func, xs, v=None):
    _, leaves, ys = _called("jvp", func, xs)
    us = [zeros_like(y) for y in as_list(ys)]
    for u in us:
        u.stop_gradient = False
    found = _grad_or_zeros(_grad_or_zeros(as_list(ys), leaves, us), us)
    return ys, tuple(found) if isinstance(ys, (list, tuple)) else found[0]
