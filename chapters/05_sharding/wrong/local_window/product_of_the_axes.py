# Two axes of 2 taken for one of 4: the same for 8 rows, but 5 rows are 2, 2, 1, 0 instead of 2, 1, 1, 1.
def local_window(shape, mesh, placements, rank):
    at = mesh.coordinate(rank)
    sizes, offsets = list(shape), [0] * len(shape)
    for dim, n in enumerate(shape):
        ways, place = 1, 0
        for axis, p in enumerate(placements):
            if isinstance(p, Shard) and p.dim == dim:
                ways, place = ways * mesh.sizes[axis], place * mesh.sizes[axis] + at[axis]
        sizes[dim], offsets[dim] = chunk(n, ways, place)
    return tuple(sizes), tuple(offsets)
