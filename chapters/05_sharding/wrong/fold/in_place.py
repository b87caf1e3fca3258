# Adds into the first member's array: that rank has lost its own value.
def fold(values, op, out=None):
    combine = REDUCTIONS[op]
    total = values[0]
    if total.dtype in dtypes.LOW_PRECISION:
        wide = total.astype(_FLOAT32)
        for x in values[1:]:
            combine(wide, x.astype(_FLOAT32), out=wide)
        return wide.astype(total.dtype)
    for x in values[1:]:
        combine(total, x, out=total)
    return total
