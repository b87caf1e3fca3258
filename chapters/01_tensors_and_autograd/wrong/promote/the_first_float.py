# Forgets that both may be floats: the left one wins, so that float16 + float32 loses digits.
def promote(a, b):
    if a == b:
        return a
    if a in FLOATS:
        return a
    if b in FLOATS:
        return b
    return of(np.promote_types(a, b)).np
