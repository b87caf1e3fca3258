# Compares with the version that the handle saw last; a write through a view of the same memory is not seen by it.
def again(node, value, history):
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    seen = owner.version if type(owner) is Storage else owner.seen
    if seen != version:
        name = owner.name if isinstance(owner, Tensor) else "(a result)"
        raise RuntimeError(f"tensor {name} was modified: expected version {version}, found {seen}")
    t = Tensor(payload)
    if history is not None:
        t.node, t.index = history
        t.stop_gradient = False
    return t
