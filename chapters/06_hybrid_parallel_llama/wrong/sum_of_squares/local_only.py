# The squares of what this rank holds: each rank has another norm, and clips by another factor.
def sum_of_squares(grads):
    wide = dtypes.float64 if any(g.payload.dtype == dtypes.float64.np for g in grads) else dtypes.float32
    held = [g._local_value() if hasattr(g.payload, "placements") else g for g in grads]
    return add_n([sum(square(cast(g, wide))) for g in held])
