# An all-reduce as if everybody gave everything to everybody: n - 1 times the whole, where two (n - 1)/n will do.
def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    others = len(mesh.group(rank, step.axis)) - 1
    if others == 0 or step.action in ("slice", "keep", "pad"):
        return 0
    before = local_shape(shape, mesh, now, rank)
    total = math.prod(before)
    if step.action in ("all_gather", "all_reduce"):
        return others * total
    kept = local_shape(shape, mesh, step.applied(now), rank)[step.dst.dim]
    return total // before[step.dst.dim] * (before[step.dst.dim] - kept) if total else 0
