"""Reshards carried out on simulated ranks: whatever the mesh, the placements and the shape, the value stays, and the
communicator counts the bytes that the plan foretells."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.dist.comm.sim import World
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard, canonical
from minipd.dist.reshard import cost
from minipd.dist.reshard.across import exchanged
from minipd.dist.reshard.between import plan_between
from minipd.dist.reshard.messages import messages, messages_between
from minipd.dist.reshard.plan import bytes_sent, describe, plan
from minipd.dist.reshard.run import run_between, run_plan
from minipd.dist.reshard.steps import COLLECTIVES, Exchange, Step
from minipd.dist.sharding import local_shape
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels, RankContext
from minipd.framework.rank import enter, leave
from tests.dist.layouts import elements, every_placement, meshes, pieces, placed, tensors, value

RUN = Kernels().run


def on_ranks(size, function):
    """(what each rank returns, what its communicator counted), by rank."""
    def rank(comm):
        token = enter(RankContext(comm.rank, comm.size, comm))
        try:
            return function(comm.rank), comm.moved, comm.counts
        finally:
            leave(token)
    return World(size).run(rank)


def foretold(steps, x, rank):
    """What the communicator of a rank shall count, in bytes, by name: what it gives to each call, or receives."""
    found = collections.Counter()
    for step, before, after in steps.stages:
        if isinstance(step, Exchange):
            for m in exchanged(x.shape, steps.mesh, before, after):
                found["send"] += math.prod(m.shape) * x.itemsize * (m.src == rank != m.dst)
                found["recv"] += math.prod(m.shape) * x.itemsize * (m.dst == rank != m.src)
        elif step.action in COLLECTIVES:
            found[step.action] += math.prod(local_shape(x.shape, steps.mesh, before, rank)) * x.itemsize
    return found


def check(x, mesh, src, dst, rng):
    src, dst = canonical(src), canonical(dst)
    given = pieces(x, mesh, src, rng)
    steps = plan(src, dst, mesh, x.ndim, x.shape)
    told = f"{x.dtype}{x.shape} on {mesh}: {src} -> {dst}\n{describe(steps, mesh)}"

    def run(rank):
        if mesh.contains(rank):
            return run_plan(DistValue(given[rank], x.shape, x.dtype, mesh, src), dst, RUN, rank)
        return None
    found = on_ranks(max(mesh.process_ids) + 1, run)
    np.testing.assert_allclose(value({r: found[r][0] for r in mesh.process_ids}, mesh, dst, x.shape, x.dtype), x,
                               rtol=1e-12, err_msg=told)
    stages = messages(steps, x.shape)
    for rank in mesh.process_ids:
        assert +found[rank][1] == +foretold(steps, x, rank), told
        sent = sum(stage.bytes_by_rank(x.itemsize)[rank] for stage in stages)
        assert sent == bytes_sent(steps, x.shape, x.dtype, rank), told
    for stage in stages:                        # nobody sends what it does not hold
        for s in stage.sent:
            if not s.partial and stage.step.action != "all_reduce":
                block = [set(range(o, o + n)) for o, n in zip(s.offsets, s.shape, strict=True)]
                for dim, wanted in enumerate(block):
                    assert wanted <= set(elements(x.shape[dim], mesh, stage.before, dim, s.src).tolist()), told
                    assert wanted <= set(elements(x.shape[dim], mesh, stage.after, dim, s.dst).tolist()), told


def one_mesh(data):
    x, dtype = data.draw(tensors())
    mesh = data.draw(meshes())
    src, dst = (data.draw(placed(mesh, x.shape, dtype)) for _ in range(2))
    check(x, mesh, src, dst, np.random.default_rng(data.draw(st.integers(0, 99))))


@given(st.data())
@settings(max_examples=120)
def test_on_one_mesh(data):
    one_mesh(data)


@pytest.mark.long
@given(st.data())
@settings(max_examples=4000)
def test_on_one_mesh_long(data):
    one_mesh(data)


@pytest.mark.parametrize(("sizes", "shape"), [((2,), (5, 3)), ((4,), (4, 6)), ((2, 2), (3, 4))])
def test_every_pair_of_plain_placements(sizes, shape):
    mesh = ProcessMesh(np.arange(math.prod(sizes)).reshape(sizes))
    x, rng = np.arange(float(math.prod(shape))).reshape(shape) - 5, np.random.default_rng(1)
    every = every_placement(2, len(sizes), ("sum", "max") if len(sizes) == 1 else ("sum",))
    for src in every:
        for dst in every:
            check(x, mesh, src, dst, rng)


def two_meshes(data):
    """Meshes of any of six ranks: part of each other, overlapping or not."""
    x, dtype = data.draw(tensors())
    ranks = range(6)
    a = data.draw(meshes(6, ranks))
    b = data.draw(meshes(6, ranks).filter(lambda mesh: mesh != a))
    if data.draw(st.booleans()) and a.size == b.size:       # often enough: equal shapes
        b = ProcessMesh(np.array(b.process_ids).reshape(a.sizes))
    if a == b:
        return
    src, dst = (canonical(data.draw(placed(mesh, x.shape, dtype))) for mesh in (a, b))
    between = plan_between(a, src, b, dst, x.shape)
    told = f"{x.dtype}{x.shape}: {src} on {a} -> {dst} on {b}\n{between}"
    given = pieces(x, a, src, np.random.default_rng(data.draw(st.integers(0, 99))))

    def run(rank):
        return run_between(DistValue(given.get(rank), x.shape, x.dtype, a, src), b, between, RUN, rank)
    found = on_ranks(6, run)
    np.testing.assert_allclose(value({r: found[r][0] for r in b.process_ids}, b, dst, x.shape, x.dtype), x, rtol=1e-12,
                               err_msg=told)
    assert all(found[r][0] is None for r in ranks if not b.contains(r)), told
    stages = messages_between(between, x.shape)
    for rank in ranks:
        expected = foretold(between.here, x, rank) if a.contains(rank) else collections.Counter()
        if b.contains(rank):
            expected += foretold(between.there, x, rank)
        for m in between.messages:
            expected["send"] += math.prod(m.shape) * x.itemsize * (m.src == rank != m.dst)
            expected["recv"] += math.prod(m.shape) * x.itemsize * (m.dst == rank != m.src)
        expected["broadcast"] += x.nbytes * sum(rank in g.group for g in between.broadcasts)
        assert +found[rank][1] == +expected, told
    crossing = next(stage for stage in stages if stage.step is None)
    if not between.broadcasts:
        assert sum(s.elements for s in crossing.sent) == sum(
            math.prod(m.shape) for m in between.messages if m.src != m.dst)


@given(st.data())
@settings(max_examples=70)
def test_from_mesh_to_mesh(data):
    two_meshes(data)


@pytest.mark.long
@given(st.data())
@settings(max_examples=2000)
def test_from_mesh_to_mesh_long(data):
    two_meshes(data)


# ------------------------------------------------------------------------------------------ cases that chance misses
def cube(n=3):
    return ProcessMesh(np.arange(2 ** n).reshape((2,) * n), ["x", "y", "z"][:n])


R, P, S = Replicate(), Partial(), Shard
X = np.arange(24.0).reshape(4, 6) - 7


def test_blocks_are_exchanged_among_those_with_the_same_part_of_a_sum():
    src, dst = (S(0), S(1), P), (S(1), S(0), P)
    steps = plan(src, dst, cube(), 2, X.shape)
    assert [s.action for s in steps] == ["exchange"]
    check(X, cube(), src, dst, np.random.default_rng(0))


def test_the_other_order_of_two_axes_is_an_exchange_of_two_ranks():
    """D11: rows 1, 2, 3, 4 on ranks 0 to 3 become 1, 3, 2, 4: ranks 1 and 2 swap, the others send nothing."""
    swapped = (S(0, shard_order=1), S(0))
    steps = plan((S(0), S(0)), swapped, cube(2), 2, (4, 2))
    stage, = messages(steps, (4, 2))
    assert [(s.src, s.dst, s.shape, s.offsets) for s in stage.sent] == [(2, 1, (1, 2), (2, 0)), (1, 2, (1, 2), (1, 0))]
    check(np.arange(8.0).reshape(4, 2), cube(2), (S(0), S(0)), swapped, np.random.default_rng(0))


@pytest.mark.parametrize("outer", [P, Partial("max"), Partial("min"), Partial("prod")])
@pytest.mark.parametrize("inner", [P, Partial("max"), Partial("min"), Partial("prod"), Partial("avg")])
@pytest.mark.parametrize("first", [S(0), R])
def test_what_adds_nothing_still_adds_nothing_after_the_inner_axis_is_reduced(outer, inner, first):
    check(X, cube(2), (first, inner), (outer, inner), np.random.default_rng(0))
    check(X.astype("int32"), cube(2), (first, R), (outer, R), np.random.default_rng(0))


def test_fused_weights_are_gathered_and_split_part_by_part():
    """[q k v] of 6 columns, over 2 ranks: what goes is as much as without the parts."""
    fused, tp = S(1, split_factor=3), ProcessMesh([0, 1])
    x = np.arange(12.0).reshape(2, 6)
    for src, dst, action in ((fused, R, "all_gather"), (R, fused, "slice"), (P, fused, "reduce_scatter"),
                             (fused, P, "pad")):
        assert [s.action for s in plan((src,), (dst,), tp, 2, x.shape)] == [action]
        check(x, tp, (src,), (dst,), np.random.default_rng(0))
    steps = plan((fused,), (S(1),), tp, 2, x.shape)       # rank 0 holds 0 2 4, wants 0 1 2; 1 holds 1 3 5, wants 3 4 5
    check(x, tp, (fused,), (S(1),), np.random.default_rng(0))
    assert [bytes_sent(steps, x.shape, x.dtype, r) for r in (0, 1)] == [16, 16]


def test_a_large_sum_over_two_axes_goes_in_chunks():
    """An all-reduce over both axes, one after the other, sends 2 times the tensor; first scattered over one axis, then
    reduced over the other and gathered, 1.5 times.  For a small one, fewer calls count."""
    small, large = (plan((P, P), (R, R), cube(2), 2, shape) for shape in ((4, 6), (4096, 4096)))
    assert [s.action for s in small] == ["all_reduce", "all_reduce"]
    assert [s.action for s in large] == ["reduce_scatter", "all_reduce", "all_gather"]
    shape, whole = (4096, 4096), 4096 * 4096 * 4
    assert bytes_sent(large, shape, np.dtype("float32"), 0) == 1.5 * whole
    assert bytes_sent(plan((P, P), (R, R), cube(2), 2), shape, np.dtype("float32"), 0) == 2 * whole


def test_many_ranks_that_want_all_of_it_get_a_broadcast():
    """From one rank of seven to the others, whatever its size: down a tree, three rounds and not six messages."""
    one, all_ = ProcessMesh([2]), ProcessMesh([0, 1, 2, 3, 4, 5, 6])
    between = plan_between(one, (R,), all_, (R,), X.shape)
    assert [b.group for b in between.broadcasts] == [(2, 0, 1, 3, 4, 5, 6)] and not between.messages
    stage = messages_between(between, X.shape)[0]
    assert sorted(s.dst for s in stage.sent) == [0, 1, 3, 4, 5, 6] and stage.bytes_by_rank(8)[2] == 3 * X.nbytes

    def run(rank):
        return run_between(DistValue(X if rank == 2 else None, X.shape, X.dtype, one, (R,)), all_, between, RUN, rank)
    for got, *_ in on_ranks(7, run):
        np.testing.assert_array_equal(got, X)


def test_an_axis_of_one_rank_costs_nothing_whatever_it_says():
    """D15."""
    lone, pair = ProcessMesh([[0], [1]]), ProcessMesh([0, 1])
    assert plan((S(0), S(0, shard_order=1)), (S(0), P), lone, 2, X.shape) == ()
    assert plan((S(0), S(0, split_factor=3)), (S(0), S(1)), lone, 2, X.shape) == ()
    between = plan_between(lone, (S(0), P), pair, (S(0),), X.shape)
    assert not between.here and not between.there and all(m.src == m.dst for m in between.messages)


@given(st.data())
@settings(max_examples=60)
def test_the_cost_is_that_of_the_rank_that_sends_most(data):
    x, dtype = data.draw(tensors())
    mesh = data.draw(meshes(12))
    src, dst = (data.draw(placed(mesh, x.shape, dtype)) for _ in range(2))
    steps = plan(src, dst, mesh, x.ndim, x.shape)
    for step, before, _ in steps.stages:
        amounts = [cost.sent(step, before, mesh, x.shape, r) for r in mesh.process_ids]
        dear, amount = cost.of_step(step, before, mesh, x.shape)
        if isinstance(step, Step):
            assert amount == cost.ITEM * max(amounts)
            hops = (mesh.sizes[step.axis] - 1) * (2 if step.action == "all_reduce" else 1)
            assert dear == amount + (cost.ALPHA * (1 + hops) if step.action in COLLECTIVES else 0)
        else:
            assert amount >= cost.ITEM * max(amounts)           # or what a rank gets, if that is more


@pytest.mark.parametrize(("dtype", "kind"), [
    *itertools.product(["int8", "uint8", "int32", "float16"], ["sum", "avg", "max", "min", "prod"]),
    ("bool", "any"), ("bool", "all")])
def test_every_reduction_of_every_kind_of_number(dtype, kind):
    """There and back over three ranks: what one rank keeps, or all do, reduces to the value; 3 x 100 needs 9 bits."""
    x, three = np.array([0, 1, 100, 5]).astype(dtype), ProcessMesh([0, 1, 2])

    def run(rank):
        v = DistValue(x, x.shape, x.dtype, three, (R,))
        for placements in ((S(0),), (Partial(kind),), (S(0),), (R,), (Partial(kind),), (R,)):
            v = DistValue(run_plan(v, placements, RUN, rank), x.shape, x.dtype, three, placements)
        return v.local
    for got, *_ in on_ranks(3, run):
        np.testing.assert_array_equal(got, x)
        assert got.dtype == x.dtype
