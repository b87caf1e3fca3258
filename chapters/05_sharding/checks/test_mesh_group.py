"""Who talks when an axis of the mesh communicates."""

import itertools
import random

import numpy as np

from minipd.dist.api import dtensor_from_local, reshard
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from tools.course.checking import check

GRID = [[0, 1, 2], [3, 4, 5]]


def test_a_row_and_a_column():
    mesh = ProcessMesh(GRID, ["dp", "tp"])
    check((3, 4, 5), lambda: tuple(mesh.group(4, 1)), f"rank 4 along axis 1 (tp) of {GRID}")
    check((1, 4), lambda: tuple(mesh.group(4, 0)), f"rank 4 along axis 0 (dp) of {GRID}")


def test_the_answer_is_the_same_for_all_members():
    mesh = ProcessMesh(GRID, ["dp", "tp"])
    for rank in (0, 1, 2):
        check((0, 1, 2), lambda rank=rank: tuple(mesh.group(rank, 1)), f"rank {rank} along axis 1 of {GRID}")


def test_one_axis():
    check((0, 1, 2), lambda: tuple(ProcessMesh([0, 1, 2]).group(1, 0)), "rank 1 along axis 0 of [0, 1, 2]")


def test_ranks_in_any_order():
    grid = [[3, 1], [0, 2]]
    mesh = ProcessMesh(grid)
    check((3, 1), lambda: tuple(mesh.group(1, 1)), f"rank 1 along axis 1 of {grid}: the order is that of the axis")
    check((1, 2), lambda: tuple(mesh.group(2, 0)), f"rank 2 along axis 0 of {grid}")


def test_ranks_that_do_not_begin_at_0():
    grid = [[4, 5], [6, 7]]
    check((5, 7), lambda: tuple(ProcessMesh(grid).group(7, 0)), f"rank 7 along axis 0 of {grid}")


def test_a_tuple_that_can_be_a_key():
    """Communicators remember their groups by it."""
    mesh = ProcessMesh(GRID)
    check(True, lambda: mesh.group(4, 1) in {(3, 4, 5): "met"}, "mesh.group(4, 1) as a key of a dict")


def test_three_axes():
    random.seed(5)
    for sizes in ((2, 2, 2), (1, 3, 2), (2, 3, 4)):
        ranks = random.sample(range(30), int(np.prod(sizes)))
        where = dict(zip(itertools.product(*map(range, sizes)), ranks, strict=True))
        mesh = ProcessMesh(shape=sizes, process_ids=ranks)
        for (at, rank), axis in itertools.product(where.items(), range(3)):
            line = tuple(where[(*at[:axis], i, *at[axis + 1:])] for i in range(sizes[axis]))
            check(line, lambda mesh=mesh, rank=rank, axis=axis: tuple(mesh.group(rank, axis)),
                  f"rank {rank} along axis {axis} of {mesh.mesh.tolist()}")


def test_parts_are_added_over_the_right_ranks():
    """Each rank holds its own number; after the sum over dp, ranks in one column have the same."""
    def over_dp(mesh):
        mine = np.array([10.0 ** current().rank], "float32")
        x = dtensor_from_local(mine, mesh, [Partial(), Replicate()], [1])
        return reshard(x, mesh, [Replicate(), Replicate()])._local_value().item()
    check([101.0, 1010.0, 101.0, 1010.0], lambda: simulate("dp=2,tp=2", over_dp),
          "rank r holds 10**r, Partial over dp; the sum on each rank of [[0, 1], [2, 3]]")
