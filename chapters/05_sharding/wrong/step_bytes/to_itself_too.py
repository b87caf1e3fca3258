# What a rank keeps counts as sent: n messages instead of n - 1.
def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst) if m.src == rank)
    group = mesh.group(rank, step.axis)
    if len(group) == 1 or step.action in ("slice", "keep", "pad"):
        return 0
    total = math.prod(local_shape(shape, mesh, now, rank))
    return {"all_gather": len(group) * total, "all_reduce": 2 * total}.get(step.action, total)
