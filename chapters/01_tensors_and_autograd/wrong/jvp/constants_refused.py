# Asks for gradients along paths that are not there: by what a result does not depend on, there is none, and it is 0.
def jvp(func, xs, v=None):
    _, leaves, ys = _called("jvp", func, xs)
    directions = _seeds("jvp", v, leaves)
    us = [zeros_like(y) for y in as_list(ys)]
    for u in us:
        u.stop_gradient = False
    first = grad(as_list(ys), leaves, us, create_graph=True)
    found = grad(first, us, directions)
    return ys, tuple(found) if isinstance(ys, (list, tuple)) else found[0]
