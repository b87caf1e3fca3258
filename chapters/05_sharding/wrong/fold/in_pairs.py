# In pairs, as a tree would: faster on a network, but other bits than ((a + b) + c) + d.
def fold(values, op, out=None):
    combine = REDUCTIONS[op]
    dtype = values[0].dtype
    wide = _FLOAT32 if dtype in dtypes.LOW_PRECISION else dtype
    parts = [x.astype(wide) for x in values]
    while len(parts) > 1:
        parts = [combine(*parts[i:i + 2]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    return parts[0].astype(dtype)
