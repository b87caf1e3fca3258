# A list is compared by identity: it is the same list, whatever was written into it.
def frozen(value, depth=0):
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    if kind is np.ndarray:
        return "in", value.shape, value.dtype.str, value.tobytes()
    return "is", id(value)
