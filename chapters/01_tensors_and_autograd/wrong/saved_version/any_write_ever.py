# Refuses memory that was ever written, also before the value was used.
def again(node, value, history):
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    storage = owner if type(owner) is Storage else owner.storage
    if storage is not None and storage.version > 0:
        raise RuntimeError(f"tensor {getattr(owner, 'name', '')} was modified: expected version {version}, found "
                           f"{storage.version}")
    t = Tensor(payload)
    if history is not None:
        t.node, t.index = history
        t.stop_gradient = False
    return t
