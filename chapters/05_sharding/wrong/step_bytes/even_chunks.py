# As if all chunks were equal: 5 rows over 4 ranks are 2, 2, 1 and 0.
def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    ways = mesh.sizes[step.axis]
    if ways == 1 or step.action in ("slice", "keep", "pad"):
        return 0
    total = math.prod(shape)
    for p, size in zip(now, mesh.sizes, strict=True):
        total = total // size if isinstance(p, Shard) else total
    share = total * (ways - 1) // ways
    return {"all_gather": (ways - 1) * total, "all_reduce": 2 * share}.get(step.action, share)
