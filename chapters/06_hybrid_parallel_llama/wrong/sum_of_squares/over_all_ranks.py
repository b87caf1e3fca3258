# The local squares added up over all ranks: a replicated gradient counts once for each of them.
def sum_of_squares(grads):
    wide = dtypes.float64 if any(g.payload.dtype == dtypes.float64.np for g in grads) else dtypes.float32
    split = [g for g in grads if hasattr(g.payload, "placements")]
    held = [g._local_value() if hasattr(g.payload, "placements") else g for g in grads]
    total = add_n([sum(square(cast(g, wide))) for g in held])
    if split:
        from minipd.framework.rank import current
        comm = current().comm
        total = Tensor(comm.all_reduce(total.payload, tuple(range(comm.size))))
    return total
