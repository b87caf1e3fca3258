# Takes the global shape for what a rank has: too much wherever an axis splits the tensor already.
from minipd.dist.placements import Replicate


def sent(step, now, mesh, shape, rank):
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    group = mesh.group(rank, step.axis)
    others, index = len(group) - 1, mesh.coordinate(rank)[step.axis]
    if others == 0 or step.action in ("slice", "keep", "pad"):
        return 0
    alone = tuple(p if a == step.axis else Replicate() for a, p in enumerate(now))
    before = local_shape(shape, mesh, alone, rank)
    total = math.prod(before)
    if step.action == "all_gather":
        return others * total
    if step.action == "all_reduce":
        own = ceil_chunk(total, len(group), index)[0]
        return total - own + others * own
    kept = ceil_chunk(before[step.dst.dim], len(group), index)[0]
    return total // before[step.dst.dim] * (before[step.dst.dim] - kept) if total else 0
