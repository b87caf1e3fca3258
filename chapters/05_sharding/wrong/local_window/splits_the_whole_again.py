# The second axis splits the whole dimension again, not the chunk that the first one left.
def local_window(shape, mesh, placements, rank):
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for axis, p in enumerate(placements):
        if isinstance(p, Shard):
            sizes[p.dim], offsets[p.dim] = chunk(shape[p.dim], mesh.sizes[axis], at[axis])
    return tuple(sizes), tuple(offsets)
