# From one dimension to another by way of the whole: right values, but every rank gets everything first.
def run_step(s, local):
    src, dst = s.src, s.dst
    if len(s.group) == 1:
        return local
    if isinstance(src, Partial):
        return resolve(s, local, src, dst)
    if isinstance(src, Shard) and isinstance(dst, Replicate):
        return s.call("all_gather", local, group=s.group, axis=src.dim, sizes=s.sizes(s.before, src.dim))
    if isinstance(src, Shard) and isinstance(dst, Shard):
        whole = s.call("all_gather", local, group=s.group, axis=src.dim, sizes=s.sizes(s.before, src.dim))
        sizes = s.sizes(s.after, dst.dim)
        start = sum(sizes[:s.index])
        return s.call("slice", whole, axes=(dst.dim,), starts=(start,), ends=(start + sizes[s.index],))
    if isinstance(src, Replicate) and isinstance(dst, Shard):
        shape, offsets = local_window(s.x.shape, s.x.mesh, s.after, s.rank)
        start = offsets[dst.dim] - local_window(s.x.shape, s.x.mesh, s.before, s.rank)[1][dst.dim]
        return s.call("slice", local, axes=(dst.dim,), starts=(start,), ends=(start + shape[dst.dim],))
    if dst.idempotent or s.index == 0:
        return local
    return s.call("full_like", local, value=IDENTITY[dst.op])
