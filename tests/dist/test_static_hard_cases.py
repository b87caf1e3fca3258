"""Inputs on which systems of this kind have gone wrong, in programs: the same as in `test_hard_cases`, compiled."""

from __future__ import annotations

import numpy as np
import pytest

from minipd.dist.api import reshard
from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.partition import output_types, partition
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.executor import Executor
from minipd.framework.rank import current
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.dist.ranks import on_mesh
from tests.dist.simulated import join, split

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)
RNG = np.random.default_rng(4)


class Ran:
    """outputs: whole.  parts: what each rank has of the first one.  kinds: their types.  counts: of rank 0's
    collectives."""

    def __init__(self, mesh, function, given, gradients=False):
        """given: for each argument (an array, placements), or (the list of what the ranks hold, placements)."""
        grid = mesh if isinstance(mesh, ProcessMesh) else parse_mesh(mesh)
        arrays = [np.asarray(a[0] if isinstance(a, list) else a, np.float64) for a, _ in given]
        found = trace(function, *(InputSpec(a.shape, "float64", f"x{i}", stop_gradient=False)
                                  for i, a in enumerate(arrays)))
        if gradients:
            gs = append_backward(found.program, found.output_values, found.input_values, pin=True)
            for i, g in enumerate(gs):
                Builder(found.program.global_block()).output(f"g{i}", g)
        placed = {f"x{i}": tuple(p) for i, (_, p) in enumerate(given)}
        whole = complete(found.program, grid, lambda op: placed[op.attributes["name"].value])
        self.kinds = output_types(whole)
        locals_ = {f"x{i}": [np.asarray(x, np.float64) for x in a] if isinstance(a, list) else
                   split(np.asarray(a, np.float64), grid, p, RNG) for i, (a, p) in enumerate(given)}

        def rank(_):
            r = current().rank
            out = Executor(partition(whole, grid, r)).run({n: parts[r] for n, parts in locals_.items()})
            return out, dict(current().comm.counts)
        outs, counts = zip(*on_mesh(mesh, rank), strict=True)
        self.outputs = {n: join([o[n] for o in outs], grid, k.placements) for n, k in self.kinds.items()}
        self.parts, self.counts = [o["output_0"] for o in outs], counts[0]

    @property
    def value(self):
        return self.outputs["output_0"]


def value(mesh, function, *given):
    return Ran(mesh, function, given).value


def test_d1_mean_of_uneven_shards():
    assert value("x=2", lambda x: x.mean(), (np.arange(12).reshape(3, 4), [S0])) == 5.5
    assert value("x=2", lambda x: x.mean(), (np.arange(4.0).reshape(1, 4), [S0])) == 1.5


@pytest.mark.parametrize("function, wanted", [
    (lambda x: x.sum() + 10.0, 55.0), (lambda x: 10.0 + x.sum(), 55.0), (lambda x: x.sum() - 10.0, 35.0),
    (lambda x: 10.0 - x.sum(), -35.0), (lambda x: x.sum() * 2.0 + 1.0, 91.0), (lambda x: x.sum() / 2.0, 22.5)])
@pytest.mark.parametrize("mesh, placements", [("x=2", [S0]), ("x=2,y=2", [S0, R]), ("x=2,y=2", [S0, S0])])
def test_d2_a_partial_and_a_number(function, wanted, mesh, placements):
    assert value(mesh, function, (np.arange(10.0), placements)) == wanted


def test_d3_what_is_not_linear_reduces_first():
    parts = [[1.0, 3.0], [2.0, 1.0]], [P]
    assert value("x=2", lambda x: (x * x).sum().sqrt(), parts) == 5
    assert value("x=2", lambda x: x.max(), parts) == 4
    assert value("x=2", lambda x: F.relu(x), ([[-3.0, 2.0], [2.0, -1.0]], [P])).tolist() == [0, 1]


def test_d5_partial_times_partial():
    two = ([1.0, 2.0], [P]), ([3.0, 4.0], [P])
    assert value("x=2", lambda x, y: x * y, *two) == 21
    ran = Ran("x=2", lambda x, y: x * y, (two[0], (5.0, [R])))
    assert ran.value == 15
    assert value("x=2", lambda x, y: y / x, two[0], (6.0, [R])) == 2
    assert value("x=2", lambda x, y: x + y, two[0], (6.0, [R])) == 9


def test_d7_a_reshape_that_cuts_through_a_sharded_dimension():
    x = np.arange(96.0).reshape(12, 8)
    assert (value("x=4", lambda t: t.reshape([16, 6]), (x, [S1])) == x.reshape(16, 6)).all()
    kept = Ran("x=4", lambda t: t.reshape([96]), ((x, [S0]),))
    assert kept.counts == {} and kept.kinds["output_0"].placements == (S0,) and (kept.value == x.reshape(96)).all()


def test_d9_there_and_back_when_uneven():
    mesh, x = parse_mesh("x=4"), RNG.normal(size=(5, 10))
    ran = Ran("x=4", lambda t: reshard(t, mesh, [S0]), ((x, [R]),))
    assert [p.shape[0] for p in ran.parts] == [2, 2, 1, 0]
    ran = Ran("x=4", lambda t: reshard(reshard(t, mesh, [S0]), mesh, [R]), ((x, [R]),))
    assert all((p == x).all() for p in ran.parts) and ran.counts == {"all_gather": 1}


def test_d10_two_axes_on_one_dimension():
    mesh = parse_mesh("x=2,y=4")
    ran = Ran("x=2,y=4", lambda t: reshard(t, mesh, [S0, S0]), ((np.arange(2.0), [R, R]),))
    assert [p.tolist() for p in ran.parts] == [[0.0], [], [], [], [1.0], [], [], []]


def test_d11_the_order_of_two_splits():
    mesh = parse_mesh("x=2,y=2")
    a = np.arange(1.0, 9.0).reshape(4, 2)
    swapped = [Shard(0, shard_order=1), Shard(0, shard_order=0)]
    assert [p[0].tolist() for p in Ran(mesh, lambda t: reshard(t, mesh, [S0, S0]), ((a, [R, R]),)).parts] == [
        [1, 2], [3, 4], [5, 6], [7, 8]]
    assert [p[0].tolist() for p in Ran(mesh, lambda t: reshard(t, mesh, swapped), ((a, [R, R]),)).parts] == [
        [1, 2], [5, 6], [3, 4], [7, 8]]
    square = np.arange(16.0).reshape(4, 4)
    ran = Ran(mesh, lambda x, y: x.matmul(reshard(y, mesh, swapped)), ((square, [S1, S1]), (square, [R, R])))
    assert (ran.value == square @ square).all()
    ran = Ran(mesh, lambda t: reshard(reshard(t, mesh, [S0, S0]), mesh, [S0, R]), ((a, [R, R]),))
    assert (ran.value == a).all()


@pytest.mark.parametrize("src, dst, forward, back", [
    ([P], [S0], {"reduce_scatter": 1}, {"all_gather": 1}), ([P], [R], {"all_reduce": 1}, {}),
    ([R], [S0], {}, {"all_gather": 1}), ([S0], [R], {"all_gather": 1}, {}), ([R], [P], {}, {})])
def test_d12_gradients_of_reshards(src, dst, forward, back):
    """Backward runs the transposed communication, and no more."""
    mesh, x = parse_mesh("x=2"), RNG.normal(size=(4, 3))
    given = ([x, x], src) if src == [P] else (x, src)
    ran = Ran("x=2", lambda t: reshard(t, mesh, dst), (given,))
    assert ran.counts == forward
    ran = Ran("x=2", lambda t: reshard(t, mesh, dst), (given,), gradients=True)
    assert (ran.outputs["g0"] == 1).all()
    both = {k: forward.get(k, 0) + back.get(k, 0) for k in (*forward, *back)}
    assert ran.counts == both


def test_d12_gradients_through_a_sum():
    ran = Ran("x=2", lambda w, d: ((w * w + 1.0) * d).sum(), ((1.0, [R]), (np.array([0.0, 1.0]), [S0])),
              gradients=True)
    assert ran.value == 2 and ran.outputs["g0"] == 2


def test_d14_dimensions_of_size_one():
    x, y = RNG.normal(size=(4, 1)), RNG.normal(size=(1, 6))
    ran = Ran("x=2,y=2", lambda a, b: a * b, ((x, [S0, R]), (y, [R, S1])))
    assert ran.kinds["output_0"].placements == (S0, S1) and (ran.value == x * y).all() and ran.counts == {}
    z, b = RNG.normal(size=(4, 6)), RNG.normal(size=6)
    assert (value("x=2", lambda a, c: a + c, (z, [S0]), (b, [S0])) == z + b).all()


def test_d15_axes_of_one_rank_communicate_nothing():
    ran = Ran("x=1,y=2", lambda t: t.sum(axis=0).exp(), ((RNG.normal(size=(4, 2)), [S0, R]),))
    assert ran.counts == {}


def test_e1_a_table_split_by_rows_with_padding():
    table, ids = RNG.normal(size=(10, 3)), np.array([[0.0, 9, 3, 3]])
    ran = Ran("x=4", lambda i, w: F.embedding(i.astype("int64"), w, padding_idx=3).sum(), ((ids, [R]), (table, [S0])))
    wanted = table[[0, 9]].sum()
    np.testing.assert_allclose(ran.value, wanted)


def test_e2_cross_entropy_over_a_split_vocabulary():
    def loss(x, label):
        return F.cross_entropy(x, label.astype("int64"))
    assert abs(value("x=2", loss, (np.zeros((1, 4)), [S1]), ([[0.0]] * 2, [R])) - np.log(4)) < 1e-12
    assert value("x=2", loss, (np.array([[0.0, 1e4, 2e4, 1.0]]), [S1]), ([[2.0]] * 2, [R])) == 0
