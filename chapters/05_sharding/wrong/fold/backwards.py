# From the last member to the first: the same sum in another order has other bits.
def fold(values, op, out=None):
    combine = REDUCTIONS[op]
    dtype = values[0].dtype
    wide = _FLOAT32 if dtype in dtypes.LOW_PRECISION else dtype
    total = values[-1].astype(wide)
    for x in reversed(values[:-1]):
        total = combine(total, x.astype(wide))
    return total.astype(dtype)
