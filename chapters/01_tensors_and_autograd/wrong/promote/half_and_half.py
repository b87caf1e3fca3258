# float16 + bfloat16 gives one of the two; neither holds what the other can say.
def promote(a, b):
    if a == b:
        return a
    if a in FLOATS and b in FLOATS:
        return max(a, b, key=_RANK.__getitem__)
    if a in FLOATS:
        return a
    if b in FLOATS:
        return b
    return of(np.promote_types(a, b)).np
