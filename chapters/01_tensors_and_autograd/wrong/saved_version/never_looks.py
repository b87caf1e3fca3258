# Hands back the memory as it is now: the gradient is silently that of another computation.
def again(node, value, history):
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    t = Tensor(payload)
    if history is not None:
        t.node, t.index = history
        t.stop_gradient = False
    return t
