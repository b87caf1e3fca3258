# Does not look at `op`.
def fold(values, op, out=None):
    dtype = values[0].dtype
    wide = _FLOAT32 if dtype in dtypes.LOW_PRECISION else dtype
    total = values[0].astype(wide)
    for x in values[1:]:
        total = total + x.astype(wide)
    return np.asarray(total).astype(dtype)
