# Moves the first input only.
def jvp(func, xs, v=None):
    _, leaves, ys = _called("jvp", func, xs)
    directions = _seeds("jvp", v, leaves)
    us = [zeros_like(y) for y in as_list(ys)]
    for u in us:
        u.stop_gradient = False
    found = _grad_or_zeros(_grad_or_zeros(as_list(ys), leaves, us)[:1], us, directions[:1])
    return ys, tuple(found) if isinstance(ys, (list, tuple)) else found[0]
