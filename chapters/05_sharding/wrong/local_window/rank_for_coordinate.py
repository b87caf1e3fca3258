# Takes the rank for its place along the axis: right on a mesh of one axis only.
def local_window(shape, mesh, placements, rank):
    sizes, offsets = list(shape), [0] * len(shape)
    for axis, p in enumerate(placements):
        if isinstance(p, Shard):
            sizes[p.dim], offset = chunk(sizes[p.dim], mesh.sizes[axis], rank % mesh.sizes[axis])
            offsets[p.dim] += offset
    return tuple(sizes), tuple(offsets)
