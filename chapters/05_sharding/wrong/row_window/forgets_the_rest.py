# Leaves out the attributes that were there: an axis is lost.
def window_of(shape, dim, *, operand=None):
    def local(attrs, inputs, outputs, mesh, rank):
        placed = outputs[0] if operand is None else inputs[operand]
        if not any(p.is_shard(dim) and size > 1 for p, size in zip(placed, mesh.sizes, strict=True)):
            return attrs
        return {"window": (shape[dim], local_window(shape, mesh, placed, rank)[1][dim])}
    return local
