# Keeps the containers themselves: what is written into them is written into the record.
class Same:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self):
        return hash(repr(self.value))


def frozen(value, depth=0):
    kind = type(value)
    if kind in PLAIN:
        return kind, repr(value)
    if kind in (list, tuple, dict, set, frozenset) and depth < DEPTH:
        return "in", Same(value)
    if kind is np.ndarray:
        return ("in", value.shape, value.dtype.str, value.tobytes())
    return "is", id(value)
