# The inner offset takes the place of the outer one instead of adding to it: two ranks own the same rows.
def local_window(shape, mesh, placements, rank):
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for axis, p in enumerate(placements):
        if isinstance(p, Shard):
            sizes[p.dim], offsets[p.dim] = chunk(sizes[p.dim], mesh.sizes[axis], at[axis])
    return tuple(sizes), tuple(offsets)
