"""Distributed tensors from the outside: what each rank holds, what moves, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api import (
    dtensor_from_fn,
    dtensor_from_local,
    dtensor_to_local,
    reshard,
    shard_layer,
    shard_tensor,
    unshard_dtensor,
)
from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.plan import collectives, plan
from minipd.dist.reshard.steps import COLLECTIVES
from minipd.framework.rank import current
from minipd.ir.traced import trace
from minipd.nn import Layer, Linear
from minipd.static import InputSpec
from tests.dist.ranks import on_mesh
from tests.dist.simulated import join, split

R, P = Replicate(), Partial()
S0, S1 = Shard(0), Shard(1)


def locals_of(mesh, function):
    """What `function(mesh)`'s tensor holds on each rank, and its placements."""
    def run(m):
        t = function(m)
        return t.payload.local, t.payload.placements
    arrays, placements = zip(*on_mesh(mesh, run), strict=True)
    assert len(set(placements)) == 1
    return list(arrays), placements[0]


# -------------------------------------------------------------------------------------------------- shard_tensor
PLACEMENTS = [
    [R, R], [S0, R], [R, S0], [S1, R], [R, S1], [S0, S1], [S1, S0], [S0, S0], [S1, S1],
    [P, R], [R, P], [P, P], [P, S0], [S1, P], [Partial("max"), S0], [Partial("min"), R], [Partial("avg"), S1],
    [Partial("prod"), R],
]


@pytest.mark.parametrize("mesh", ["x=2,y=2", "x=2,y=3"])
@pytest.mark.parametrize("placements", PLACEMENTS, ids=str)
def test_the_parts_make_the_whole(mesh, placements):
    whole = np.arange(1.0, 36).reshape(5, 7)
    arrays, placed = locals_of(mesh, lambda m: shard_tensor(whole, m, placements))
    assert placed == tuple(placements)
    np.testing.assert_array_equal(join(arrays, parse_mesh(mesh), placements), whole)
    assert all(a.base is None for a in arrays), "a view would keep the whole alive"


@pytest.mark.parametrize("placements", PLACEMENTS, ids=str)
def test_everybody_reads_the_whole(placements):
    whole = np.arange(1.0, 36).reshape(5, 7)
    for got in on_mesh("x=2,y=2", lambda m: shard_tensor(whole, m, placements).numpy()):
        np.testing.assert_array_equal(got, whole)


@pytest.mark.parametrize(("op", "values"), [("any", [False, True, True, False]), ("all", [True, False, True, True])])
def test_partial_bools(op, values):
    def run(mesh):
        mine = dtensor_from_local(np.array([values[current().rank]]), mesh, [Partial(op)])
        return mine.item(), shard_tensor(np.array(values), mesh, [Partial(op)]).tolist()
    assert on_mesh("x=4", run) == [({"any": True, "all": False}[op], values)] * 4


def test_a_parameter_is_distributed_in_place():
    def run(mesh):
        p = paddle.create_parameter([5, 4])
        whole = p.numpy()
        same = shard_tensor(p, mesh, [S0, R])
        first = p.payload.local.shape
        again = shard_tensor(p, mesh, [R, S1])                  # it is distributed already: other placements, in place
        return (same is p, again is p, first, p.payload.local.shape, p.placements, (p.numpy() == whole).all(),
                p.stop_gradient, p.is_leaf)
    for got in on_mesh("x=2,y=2", run):
        assert got[:2] == (True, True) and got[3:] == ((5, 2), [R, S1], True, False, True)
    assert [g[2] for g in on_mesh("x=2,y=2", run)] == [(3, 4), (3, 4), (2, 4), (2, 4)]


@pytest.mark.parametrize("placements", [[S0], [S1], [R]], ids=str)
def test_a_lazy_parameter_is_filled_with_a_shard_only(placements):
    """Never more than the shard, and the same numbers as a parameter that was made whole (E5)."""
    def run(mesh):
        paddle.seed(3)
        eager = paddle.create_parameter([7, 5])
        paddle.seed(3)
        with paddle.LazyGuard():
            lazy = paddle.create_parameter([7, 5])
        shard_tensor(lazy, mesh, placements)
        local = lazy.payload.local
        own = local if local.base is None else local.base
        assert own.size == local.size
        lazy.initialize()               # as scripts for Paddle do, which fills it no sooner
        assert lazy.payload.local is local
        return eager.numpy(), lazy.numpy(), local.size
    for eager, lazy, held in on_mesh("x=4", run):
        np.testing.assert_array_equal(lazy, eager)
        assert held <= (35 if placements == [R] else 14)


def test_stop_gradient_is_the_datas_unless_one_is_given():
    def run(mesh):
        x = paddle.to_tensor([1.0], stop_gradient=False)
        return (shard_tensor(x, mesh, [R]).stop_gradient, shard_tensor(x, mesh, [R], stop_gradient=True).stop_gradient,
                shard_tensor([1.0], mesh, [R]).stop_gradient, shard_tensor(x, mesh, [R], dtype="float64").dtype.name)
    assert on_mesh("x=1", run) == [(False, True, True, "float64")]


def test_a_copy_is_distributed():
    """Neither sees what is written to the other."""
    def run(mesh):
        x = paddle.to_tensor([1.0, 2.0])
        d = shard_tensor(x, mesh, [R])
        x.zero_()
        e = dtensor_from_local(x, mesh, [R])
        x.fill_(7.0)
        return d.tolist(), e.tolist()
    assert on_mesh("x=2", run) == [([1.0, 2.0], [0.0, 0.0])] * 2


def test_what_a_tensor_says_of_itself():
    def run(mesh):
        x = shard_tensor(np.zeros((4, 6), "float32"), mesh, [S0, P])
        plain = paddle.zeros([2])
        return (x.is_dist(), x.placements, x.process_mesh is mesh, plain.is_dist(), plain.placements,
                plain.process_mesh, list(x.shape), repr(x.payload), x._local_value().shape)
    assert on_mesh("dp=2,tp=2", run) == [(True, [S0, P], True, False, None, None, [4, 6], "f32[4_dp, 6]{P_tp}",
                                          [2, 6])] * 4


# ------------------------------------------------------------------------------------------------------- reshard
@pytest.mark.parametrize("mesh", ["x=2,y=2", "x=2,y=3"])
def test_all_pairs_of_placements(mesh):
    """Every pair over two axes, with uneven shapes: the global value stays, and the plan's collectives are counted."""
    grid = parse_mesh(mesh)
    kinds = [R, S0, S1, P]
    whole = np.asarray(np.random.default_rng(5).integers(-8, 9, (5, 4)), np.float64)
    pairs = list(itertools.product(itertools.product(kinds, repeat=2), repeat=2))
    parts = {src: split(whole, grid, src, np.random.default_rng(6)) for src in dict.fromkeys(s for s, _ in pairs)}

    def run(m):
        comm, found = current().comm, []
        for src, dst in pairs:
            x = dtensor_from_local(parts[src][comm.rank], m, src, shape=(5, 4))
            before = dict(comm.counts)
            y = reshard(x, m, dst)
            counted = {k: n - before.get(k, 0) for k, n in comm.counts.items() if n != before.get(k, 0)}
            found.append((y.payload.local, y.payload.placements, counted))
        return found
    for (src, dst), *ranks in zip(pairs, *on_mesh(mesh, run), strict=True):
        locals_, placed, counted = zip(*ranks, strict=True)
        assert set(placed) == {dst}
        np.testing.assert_array_equal(join(list(locals_), grid, dst), whole, err_msg=f"{src} -> {dst}")
        wanted = collectives(plan(src, dst, grid, 2, (5, 4)))
        assert all({k: n for k, n in c.items() if k in COLLECTIVES} == {k: wanted.count(k) for k in set(wanted)}
                   for c in counted), (src, dst, counted)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "avg", "prod"])
@pytest.mark.parametrize("dst", [[R], [S0], [S1], [P]], ids=str)
def test_partials_of_every_kind(kind, dst):
    """Also from one kind to another, which goes through Replicate."""
    parts = np.array([[[1.0, -2], [3, 4]], [[2, 5], [-1, 4]]])
    combine = {"sum": np.sum, "max": np.max, "min": np.min, "avg": np.mean, "prod": np.prod}[kind]
    whole = combine(parts, axis=0)

    def run(mesh):
        x = dtensor_from_local(parts[current().rank], mesh, [Partial(kind)])
        y = reshard(x, mesh, dst)
        return y.payload.placements, y.numpy(), reshard(shard_tensor(whole, mesh, [R]), mesh, [Partial(kind)]).numpy()
    for placed, got, there_and_back in on_mesh("x=2", run):
        assert placed == tuple(dst)
        np.testing.assert_array_equal(got, whole)
        np.testing.assert_array_equal(there_and_back, whole)


def test_an_ordinary_tensor_keeps_its_history():
    def run(mesh):
        x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
        y = reshard(x * 2.0, mesh, [S0])
        (y * y).sum().backward()
        return y.payload.placements, x.grad.numpy().tolist()
    assert on_mesh("x=2", run) == [((S0,), [8.0, 16.0, 24.0])] * 2


def test_nothing_is_copied_where_nothing_moves():
    def run(mesh):
        x = shard_tensor(np.ones((4, 4)), mesh, [S0])
        return reshard(x, mesh, [S0]).payload is x.payload, sum(current().comm.counts.values())
    assert on_mesh("x=2", run) == [(True, 0)] * 2


# ------------------------------------------------------------------------------------------ local and global
@pytest.mark.parametrize("placements", [[S0, R], [S0, S1], [S0, S0], [R, S1], [P, S0], [R, R]], ids=str)
def test_from_local_and_back(placements):
    whole, grid = np.arange(35.0).reshape(5, 7), parse_mesh("x=2,y=2")
    parts = split(whole, grid, placements, np.random.default_rng(1))

    def run(mesh, shape):
        x = dtensor_from_local(parts[current().rank], mesh, placements, shape)
        values = x.numpy()                                      # resolves what was Partial
        return list(x.shape), values, dtensor_to_local(x).numpy(), x.placements, x.payload.held().local.shape
    for shape in (None, (5, 7)):
        ranks = on_mesh("x=2,y=2", lambda m, s=shape: run(m, s))
        for rank, (got, values, local, placed, held) in enumerate(ranks):
            assert got == [5, 7] and placed == placements and local.shape == held == parts[rank].shape
            np.testing.assert_array_equal(values, whole)
        np.testing.assert_array_equal(join([r[2] for r in ranks], grid, placements), whole)


def test_ranks_are_asked_for_their_shapes():
    """2, 3, 4 and 5 rows are no split of 14: without the global shape it is the sum that tells."""
    def run(mesh):
        with pytest.raises(ValueError) as error:
            dtensor_from_local(np.zeros((current().rank + 2, 3)), mesh, [S0])
        return str(error.value)
    texts = on_mesh("x=4", run)
    assert len(set(texts)) == 1, "rank 2 has its 4 rows, and raises all the same"
    assert texts[0].startswith("dtensor_from_local: expected a local shape [4, 3] on rank 0 for [14_x, 3] (chunks of "
                               "ceil(n / ways), outer mesh axis first), got [2, 3]")


def test_the_local_part_is_for_reading():
    def run(mesh):
        x = shard_tensor(np.ones((2, 3)), mesh, [S0])
        local = dtensor_to_local(x)
        with pytest.raises(RuntimeError, match="read-only memory; write a copy"):
            local.add_(paddle.ones([1, 3], "float64"))
        return local.shape, x._local_shape, local.stop_gradient, x.tolist()
    assert on_mesh("x=2", run) == [([1, 3], [1, 3], True, [[1.0] * 3] * 2)] * 2


def test_unshard_and_from_fn():
    def run(mesh):
        x = dtensor_from_fn(paddle.ones, mesh, [S0], [3, 2])
        x.stop_gradient = False
        whole = unshard_dtensor(x)
        return x.payload.local.shape, type(whole.payload), whole.shape, whole.stop_gradient, whole.is_leaf
    assert on_mesh("x=2", run) == [((2 - r, 2), np.ndarray, [3, 2], False, True) for r in range(2)]


# -------------------------------------------------------------------------------------------------- shard_layer
class Two(Layer):
    """A layer with parameters at two levels, and a buffer."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Linear(4, 6), Linear(6, 2)
        self.register_buffer("table", paddle.ones([3]))

    def forward(self, x):
        return self.second(self.first(x)) * self.table.sum()


def test_shard_layer():
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")

    def place(name, sub, mesh):
        if name == "first":
            shard_tensor(sub.weight, mesh, [S1])

    def run(mesh):
        paddle.seed(1)
        plain = Two()
        paddle.seed(1)
        layer = shard_layer(Two(), mesh, place, lambda inputs, m: [shard_tensor(i, m, [R]) for i in inputs],
                            lambda out, m: reshard(out, m, [S0]))
        y = layer(paddle.to_tensor(x))
        return ({n: p.placements for n, p in layer.named_parameters()}, layer.table.placements, y.placements,
                np.abs(y.numpy() - plain(paddle.to_tensor(x)).numpy()).max())
    for params, table, out, error in on_mesh("x=2", run):
        assert params == {"first.weight": [S1], "first.bias": [R], "second.weight": [R], "second.bias": [R]}
        assert (table, out) == ([R], [S0]) and error < 1e-6


# ------------------------------------------------------------------------------------------------------- errors
def refused(function, ranks=2):
    """The error of `function(mesh)` on each rank."""
    def run(mesh):
        with pytest.raises((ValueError, TypeError, NotImplementedError)) as error:
            function(mesh)
        return f"{type(error.value).__name__}: {error.value}"
    return on_mesh(f"x={ranks}", run)


ONE = np.ones((4, 6), "float32")


@pytest.mark.parametrize(("function", "text"), [
    (lambda m: shard_tensor(ONE, parse_mesh("dp=2,tp=2"), [R, R]),
     "ValueError: shard_tensor: expected a mesh of the ranks 0 to 1 that were started, got dp=2,tp=2 of the ranks "
     "[0, 1, 2, 3]; start more ranks (minipd launch -n 4) or shrink the mesh"),
    (lambda m: shard_tensor(ONE, ProcessMesh([0, 7]), [R]),
     "ValueError: shard_tensor: expected a mesh of the ranks 0 to 1 that were started, got d0=2 of the ranks [0, 7]"),
    (lambda m: dtensor_from_local(ONE, ProcessMesh([1 - current().rank]), [R]),
     "ValueError: dtensor_from_local: expected a mesh with this rank, "),
    (lambda m: shard_tensor(ONE, m, [R, R]),
     "ValueError: shard_tensor: expected 1 placements, one for each axis of the mesh x=2, got 2"),
    (lambda m: shard_tensor(ONE, m, [Shard(2)]), "ValueError: shard_tensor: expected Shard(dim=2) to name one of its "
                                                 "dimensions, got a tensor that is 2-D, with dimensions 0 to 1"),
    (lambda m: shard_tensor(np.float32(1), m, [S0]), "got a tensor that is 0-D, it has no dimension to shard"),
    (lambda m: shard_tensor(ONE, m, [0]), "TypeError: shard_tensor: expected placements Shard(dim), Replicate() or "
                                          "Partial(), got 0"),
    (lambda m: reshard(shard_tensor(ONE, m, [R]), m, [Shard(3)]), "ValueError: reshard: expected Shard(dim=3)"),
    (lambda m: reshard(shard_tensor(ONE, m, [R]), ProcessMesh([1, 2]), [R]),
     "ValueError: reshard: expected a mesh of the ranks 0 to 1 that were started, got d0=2 of the ranks [1, 2]"),
    (lambda m: dtensor_from_local(ONE, m, [S0], shape=(5, 6)),
     "ValueError: dtensor_from_local: expected a local shape [3, 6] on rank 0 for [5_x, 6] (chunks"),
    (lambda m: dtensor_from_local(shard_tensor(ONE, m, [R]), m, [R]),
     "TypeError: dtensor_from_local: expected what this rank has, as an ordinary tensor, got f32[4, 6]"),
    (lambda m: shard_layer(ONE, m), "TypeError: shard_layer: expected a layer, got array("),
    (lambda m: dtensor_to_local(paddle.ones([2])), "TypeError: dtensor_to_local: expected a distributed tensor, got "
                                                   "f32[2]; make one with shard_tensor"),
    (lambda m: shard_tensor(paddle.create_parameter([2, 2]), m, [R], dtype="float64"),
     "ValueError: shard_tensor: expected create_parameter_0.w_0 to keep its dtype, for a Parameter is distributed in "
     "place, got dtype='float64' for f32[2, 2]; make it with that dtype"),
    (lambda m: shard_tensor(ONE, m, [S0]) + shard_tensor(ONE, ProcessMesh([1, 0], ["y"]), [S0]),
     "ValueError: add: expected operands on one mesh, got f32[4_x, 6] on x=2 of the ranks [0, 1] and f32[4_y, 6] on "
     "y=2 of the ranks [1, 0]; reshard one to the other's mesh"),
])
def test_errors(function, text):
    assert text in refused(function)[0]


def test_in_a_program_it_leaves_a_mark():
    def run(mesh):
        program = trace(lambda x: shard_tensor(x, mesh, [S0]) * 2.0, InputSpec([2], "float32")).program
        return [op.name() for op in program.global_block()]
    assert "dist_op.shard_tensor" in on_mesh("x=2", run)[0]


def test_a_mesh_that_is_a_part_of_the_ranks():
    """Ranks outside of it may not use it; those inside need nothing of the others."""
    def run(mesh):
        rank = current().rank
        if rank not in (1, 3):
            return None
        x = shard_tensor(np.arange(5.0), ProcessMesh([1, 3]), [S0])
        return x.payload.local.tolist(), x.sum().item()
    assert on_mesh("x=4", run) == [None, ([0, 1, 2], 10), None, ([3, 4], 10)]


def test_paddles_names():
    assert dist.shard_tensor is shard_tensor and dist.reshard is reshard and dist.ProcessMesh is ProcessMesh
