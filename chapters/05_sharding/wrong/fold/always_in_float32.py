# Combines everything in float32: exact for float16, but float64 and large integers lose digits.
def fold(values, op, out=None):
    total = values[0].astype(_FLOAT32)
    for x in values[1:]:
        total = np.asarray(REDUCTIONS[op](total, x.astype(_FLOAT32)))
    return total.astype(values[0].dtype)
