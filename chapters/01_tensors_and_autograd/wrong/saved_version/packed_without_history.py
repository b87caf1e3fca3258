# Unpacks what a hook has packed, and forgets where it came from.
def again(node, value, history):
    if type(value) is Packed:
        return value.tensor()
    if type(value) is not tuple:
        return value
    if len(value) == 2:
        return Meta(*value)
    payload, owner, version = value
    storage = owner if type(owner) is Storage else owner.storage
    if storage is not None and storage.version != version and not is_traced(payload):
        raise RuntimeError(f"{getattr(owner, 'name', 'the result of ' + node.row.name)}: saved at version {version}, "
                           f"found {storage.version}")
    return _with_history(Tensor(payload), history)
