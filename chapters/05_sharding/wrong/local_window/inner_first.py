# The inner axis splits first: with two axes on one dimension the rows go to other ranks, and no shape tells.
def local_window(shape, mesh, placements, rank):
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for axis in reversed(range(len(placements))):
        p = placements[axis]
        if isinstance(p, Shard):
            sizes[p.dim], offset = chunk(sizes[p.dim], mesh.sizes[axis], at[axis])
            offsets[p.dim] += offset
    return tuple(sizes), tuple(offsets)
