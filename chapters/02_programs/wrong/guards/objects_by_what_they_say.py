# Other objects are compared by their own ==, which may say anything, or raise.
def frozen(value, depth=0):
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    if depth < DEPTH:
        if kind in (list, tuple):
            return "in", kind, tuple(frozen(v, depth + 1) for v in value)
        if kind is dict:
            return "in", kind, tuple((frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in value.items())
        if kind in (set, frozenset):
            return "in", kind, frozenset(frozen(v, depth + 1) for v in value)
    if kind is np.ndarray:
        return "in", value.shape, value.dtype.str, value.tobytes()
    return "is", value
