# The second of two results comes back as the first: second derivatives go to the wrong one.
def again(node, value, history):
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    storage = owner if type(owner) is Storage else owner.storage
    if storage is not None and storage.version != version:
        name = owner.name if isinstance(owner, Tensor) else "(a result)"
        raise RuntimeError(f"tensor {name} was modified: expected version {version}, found {storage.version}")
    t = Tensor(payload)
    if history is not None:
        t.node = history[0]
        t.stop_gradient = False
    return t
