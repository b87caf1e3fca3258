# The wider of two ints by the number of bits: uint8 + int8 gives one of them, which holds not all values of the other.
def promote(a, b):
    if a == b:
        return a
    if a in FLOATS and b in FLOATS:
        return float32.np if a in LOW_PRECISION and b in LOW_PRECISION else max(a, b, key=_RANK.__getitem__)
    if a in FLOATS:
        return a
    if b in FLOATS:
        return b
    return a if a.itemsize >= b.itemsize else b
