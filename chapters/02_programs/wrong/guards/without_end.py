# Goes down as far as it goes; a list that holds itself has no bottom.
def frozen(value, depth=0):
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    if kind in (list, tuple):
        return "in", kind, tuple(frozen(v) for v in value)
    if kind is dict:
        return "in", kind, tuple((frozen(k), frozen(v)) for k, v in value.items())
    if kind in (set, frozenset):
        return "in", kind, frozenset(frozen(v) for v in value)
    if kind is Hooks:
        return "in", kind, frozen(value.entries)
    if kind is np.ndarray:
        return "in", value.shape, value.dtype.str, value.tobytes()
    return "is", id(value)
