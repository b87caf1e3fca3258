# Counts what a rank gives once, not once for each of the others.
def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    group = mesh.group(rank, step.axis)
    if len(group) == 1 or step.action in ("slice", "keep", "pad"):
        return 0
    total = math.prod(local_shape(shape, mesh, now, rank))
    if step.action in ("all_gather", "all_reduce"):
        return total
    return total - total // len(group)
