# Takes a slice for a message: whoever has everything needs nobody to cut off a part of it.
def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    group = mesh.group(rank, step.axis)
    others, index = len(group) - 1, mesh.coordinate(rank)[step.axis]
    if others == 0 or step.action in ("keep", "pad"):
        return 0
    before = local_shape(shape, mesh, now, rank)
    total = math.prod(before)
    if step.action == "all_gather":
        return others * total
    if step.action == "all_reduce":
        own = ceil_chunk(total, len(group), index)[0]
        return total - own + others * own
    kept = local_shape(shape, mesh, step.applied(now), rank)[step.dst.dim]
    return total // before[step.dst.dim] * (before[step.dst.dim] - kept) if total else 0
