# Forgets to round back: float16 parts have a float32 sum.
def fold(values, op, out=None):
    dtype = values[0].dtype
    total = values[0].astype(_FLOAT32 if dtype in dtypes.LOW_PRECISION else dtype)
    for x in values[1:]:
        total = np.asarray(REDUCTIONS[op](total, x.astype(total.dtype)))
    return total
