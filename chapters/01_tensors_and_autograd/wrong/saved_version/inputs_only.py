# Looks at saved inputs only; a saved result (exp keeps its own) may be written unseen.
def again(node, value, history):
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    if isinstance(owner, Tensor) and owner.inplace_version != version:
        raise RuntimeError(f"tensor {owner.name} was modified: expected version {version}, found "
                           f"{owner.inplace_version}")
    t = Tensor(payload)
    if history is not None:
        t.node, t.index = history
        t.stop_gradient = False
    return t
