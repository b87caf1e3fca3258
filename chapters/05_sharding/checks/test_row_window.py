"""Which rows of a table, or columns of logits, a rank has: what a vocabulary-parallel operator is told."""

import numpy as np

from minipd.dist.api import shard_tensor
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.spmd.indexing import window_of
from minipd.nn import functional as F
from tools.course.checking import check

R, P, S = Replicate(), Partial(), Shard


def windows(shape, dim, inputs, outputs, mesh, operand, attrs=None):
    local = window_of(shape, dim, operand=operand)
    given = {} if attrs is None else attrs
    return [local(dict(given), inputs, outputs, mesh, rank) for rank in mesh.process_ids]


def expect(expected, shape, placed, mesh, dim=0):
    """A table that is operand 1, beside row numbers that are replicated."""
    inputs = ((R,) * mesh.ndim, tuple(placed))
    check(expected, lambda: windows(shape, dim, inputs, ((P,) * mesh.ndim,), mesh, 1),
          f"window_of({shape}, {dim}, operand=1) for a table placed as {list(placed)} on {mesh.text()}: "
          "the attributes of each rank")


def test_two_halves():
    expect([{"window": (4, 0)}, {"window": (4, 2)}], (4, 3), [S(0)], parse_mesh("tp=2"))


def test_five_rows_over_four_ranks():
    expect([{"window": (5, 0)}, {"window": (5, 2)}, {"window": (5, 4)}, {"window": (5, 5)}], (5, 3), [S(0)],
           parse_mesh("tp=4"))


def test_what_is_not_split_needs_none():
    for placed in ([R], [S(1)]):
        expect([{}, {}], (4, 6), placed, parse_mesh("tp=2"))
    expect([{}], (4, 6), [S(0)], parse_mesh("tp=1"))


def test_another_dimension():
    expect([{"window": (6, 0)}, {"window": (6, 3)}], (4, 6), [S(1)], parse_mesh("tp=2"), dim=1)


def test_two_axes():
    expect([{"window": (4, 0)}, {"window": (4, 2)}] * 2, (4, 3), [R, S(0)], parse_mesh("dp=2,tp=2"))
    expect([{"window": (5, 0)}, {"window": (5, 2)}, {"window": (5, 3)}, {"window": (5, 4)}], (5, 3), [S(0), S(0)],
           parse_mesh("dp=2,tp=2"))


def test_ranks_in_any_order():
    expect([{"window": (4, 0)}, {"window": (4, 2)}], (4, 3), [S(0)], ProcessMesh([3, 1], ["tp"]))


def test_without_an_operand_it_is_the_result():
    """The gradient of a table is placed as the table is."""
    mesh = parse_mesh("tp=2")
    check([{"window": (4, 0)}, {"window": (4, 2)}],
          lambda: windows((4, 3), 0, ((R,), (R,), (R,)), ((S(0),),), mesh, None),
          "window_of((4, 3), 0) for a result placed as [Shard(dim=0)] on tp=2: the attributes of each rank")
    check([{}, {}], lambda: windows((4, 3), 0, ((S(0),), (R,)), ((R,),), mesh, None),
          "window_of((4, 3), 0) for a result placed as [Replicate()], beside an operand of [Shard(dim=0)]")


def test_other_attributes_stay():
    given = {"axis": 7}
    check([{"axis": 7, "window": (4, 0)}, {"axis": 7, "window": (4, 2)}],
          lambda: windows((4, 3), 0, ((R,), (S(0),)), ((P,),), parse_mesh("tp=2"), 1, given),
          "the attributes {'axis': 7}, for a table of 4 rows over tp=2: those of each rank")


def test_an_embedding():
    table = np.arange(10.0).reshape(5, 2)
    cases = (("tp=2", [S(0)]), ("tp=4", [S(0)]), ("dp=2,tp=2", [S(0), S(0)]), ("tp=2", [R]), ("tp=2", [S(1)]))
    for mesh, placed in cases:
        def run(grid, placed=placed):
            ids = shard_tensor(np.array([4, 0, 3, 4]), grid, [R] * grid.ndim)
            return F.embedding(ids, shard_tensor(table, grid, placed)).numpy()
        check(table[[4, 0, 3, 4]], lambda mesh=mesh, run=run: simulate(mesh, run, "float64")[0],
              f"the rows 4, 0, 3, 4 of {table.astype(int).tolist()}, placed as {placed} on {mesh}")
