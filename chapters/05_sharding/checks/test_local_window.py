"""What a rank holds of a tensor: sizes and offsets, with several mesh axes."""

import itertools
import random

import numpy as np

import minipd.distributed as dist
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.sharding import local_window
from minipd.dist.simulate import simulate
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard
MESH = parse_mesh("dp=2,tp=2")


def windows(shape, mesh, placements):
    found = [local_window(shape, mesh, placements, rank) for rank in mesh.process_ids]
    return [(tuple(sizes), tuple(offsets)) for sizes, offsets in found]


def on(shape, mesh, placements):
    return f"shape {shape} on {mesh.text()}, placements {list(placements)}, as (sizes, offsets) by rank"


def expect(expected, shape, mesh, placements):
    check(expected, lambda: windows(shape, mesh, placements), on(shape, mesh, placements))


def test_one_axis():
    expect([((2, 3), (0, 0)), ((2, 3), (2, 0))], (4, 3), parse_mesh("tp=2"), (S(0),))
    expect([((4, 2), (0, 0)), ((4, 1), (0, 2))], (4, 3), parse_mesh("tp=2"), (S(1),))


def test_replicate_and_partial_leave_it_whole():
    expect([((4, 3), (0, 0))] * 2, (4, 3), parse_mesh("tp=2"), (R,))
    expect([((4, 3), (0, 0))] * 2, (4, 3), parse_mesh("tp=2"), (P,))


def test_two_axes_and_two_dimensions():
    expect([((2, 3), (0, 0)), ((2, 3), (0, 3)), ((2, 3), (2, 0)), ((2, 3), (2, 3))], (4, 6), MESH, (S(0), S(1)))


def test_one_of_two_axes():
    expect([((4,), (0,)), ((4,), (0,)), ((4,), (4,)), ((4,), (4,))], (8,), MESH, (S(0), R))
    expect([((4,), (0,)), ((4,), (4,)), ((4,), (0,)), ((4,), (4,))], (8,), MESH, (R, S(0)))


def test_two_axes_split_one_dimension():
    expect([((2,), (0,)), ((2,), (2,)), ((2,), (4,)), ((2,), (6,))], (8,), MESH, (S(0), S(0)))


def test_the_outer_axis_splits_first():
    expect([((2,), (0,)), ((1,), (2,)), ((1,), (3,)), ((1,), (4,))], (5,), MESH, (S(0), S(0)))


def test_ranks_in_any_order():
    mesh = ProcessMesh([3, 0, 2], ["tp"])
    check([((1,), (0,)), ((1,), (1,)), ((1,), (2,))],
          lambda: [tuple(map(tuple, local_window((3,), mesh, (S(0),), rank))) for rank in (3, 0, 2)],
          "shape (3,) on the mesh [3, 0, 2], Shard(0), as (sizes, offsets) of the ranks 3, 0 and 2")


def test_two_elements_over_eight_ranks():
    sizes = [s for (s,), _ in windows((2,), parse_mesh("dp=2,tp=4"), (S(0), S(0)))]
    check([1, 0, 0, 0, 1, 0, 0, 0], sizes, "shape (2,) on dp=2,tp=4, both Shard(0): how many each rank has")


def held(shape, mesh, placements, at):
    """The elements of a rank, by cutting lists of positions, one axis after the other."""
    rows = [list(range(n)) for n in shape]
    for axis, p in enumerate(placements):
        if isinstance(p, Shard):
            mine = rows[p.dim]
            step = max(-(-len(mine) // mesh.sizes[axis]), 1)
            rows[p.dim] = mine[at[axis] * step:(at[axis] + 1) * step]
    return rows


def test_random_meshes():
    random.seed(5)
    for _ in range(150):
        mesh = parse_mesh(",".join(f"a{i}={random.randint(1, 3)}" for i in range(random.randint(1, 3))))
        shape = tuple(random.randint(1, 7) for _ in range(random.randint(1, 3)))
        placements = tuple(random.choice([R, P, *map(S, range(len(shape)))]) for _ in mesh.sizes)
        for rank, at in enumerate(itertools.product(*map(range, mesh.sizes))):
            rows = held(shape, mesh, placements, at)
            sizes, offsets = local_window(shape, mesh, placements, rank)
            got = [list(range(o, o + n)) for n, o in zip(sizes, offsets, strict=True)]
            check(rows, got, f"shape {shape} on {mesh.text()}, placements {list(placements)}: the positions of rank "
                  f"{rank} along each dimension")


def test_a_tensor_is_whole_again_after_a_round_trip():
    def there_and_back(mesh):
        return dist.shard_tensor(np.arange(5, dtype="float32"), mesh, [S(0), S(0)]).tolist()
    check([[0.0, 1.0, 2.0, 3.0, 4.0]] * 4, lambda: simulate("dp=2,tp=2", there_and_back),
          "arange(5) sharded over dp and tp and gathered again, on each rank")


def test_the_order_may_be_another():
    """shard_order: tp splits first here, so a rank's first half is by its place along tp."""
    expect([((2,), (0,)), ((2,), (4,)), ((2,), (2,)), ((2,), (6,))], (8,), MESH, (S(0, shard_order=1), S(0)))
    expect([((2,), (0,)), ((1,), (3,)), ((1,), (2,)), ((1,), (4,))], (5,), MESH, (S(0, shard_order=1), S(0)))


def test_a_split_factor_leaves_no_one_block():
    """Of 4 rows in 2 parts rank 0 has the rows 0 and 2: these are no window, and that must be said."""
    try:
        got = local_window((4,), parse_mesh("tp=2"), (S(0, split_factor=2),), 0)
    except ValueError:
        got = "ValueError"
    check("ValueError", got, "shape (4,) on tp=2, [Shard(0, split_factor=2)], rank 0, who has the rows 0 and 2")
