# Lets a complex number keep its width beside a float64, which its parts cannot hold.
def promote(a, b):
    if a == b:
        return a
    if a in COMPLEX or b in COMPLEX:
        return b if a not in COMPLEX else a if b not in COMPLEX else complex128.np
    if a in FLOATS and b in FLOATS:
        return float32.np if a in LOW_PRECISION and b in LOW_PRECISION else max(a, b, key=_RANK.__getitem__)
    if a in FLOATS:
        return a
    if b in FLOATS:
        return b
    return of(np.promote_types(a, b)).np
