# Added one to the next: a whole and a Partial do not add up for free, so nearly each of them is reduced by itself.
def sum_of_squares(grads):
    wide = dtypes.float64 if any(g.payload.dtype == dtypes.float64.np for g in grads) else dtypes.float32
    total = sum(square(cast(grads[0], wide)))
    for g in grads[1:]:
        total = total + sum(square(cast(g, wide)))
    return total
