# Says how many rows the rank has, where the number of all of them is asked for: row 4 of 5 would be refused.
def window_of(shape, dim, *, operand=None):
    def local(attrs, inputs, outputs, mesh, rank):
        placed = outputs[0] if operand is None else inputs[operand]
        if not any(p.is_shard(dim) and size > 1 for p, size in zip(placed, mesh.sizes, strict=True)):
            return attrs
        sizes, offsets = local_window(shape, mesh, placed, rank)
        return {**attrs, "window": (sizes[dim], offsets[dim])}
    return local
