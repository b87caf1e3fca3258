# nan is not equal to itself: a guard on it never holds.
def frozen(value, depth=0):
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if depth < DEPTH:
        if kind in (list, tuple):
            return "in", kind, tuple(frozen(v, depth + 1) for v in value)
        if kind is dict:
            return "in", kind, tuple((frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in value.items())
        if kind in (set, frozenset):
            return "in", kind, frozenset(frozen(v, depth + 1) for v in value)
        if kind is Hooks:
            return "in", kind, frozen(value.entries, depth + 1)
    if kind is np.ndarray:
        return "in", value.shape, value.dtype.str, value.tobytes()
    return "is", id(value)
