"""Reshards from one mesh to another, on simulated ranks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minipd.autograd.engine import grad
from minipd.dist.api import reshard, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.reshard.across import plan_across
from minipd.dist.sharding import local_window
from minipd.dist.simulate import simulate
from minipd.framework.rank import current

R, S, P = Replicate(), Shard, Partial()
MESHES = {
    "two": ProcessMesh([0, 1]), "other two": ProcessMesh([2, 3]), "overlapping": ProcessMesh([1, 2]),
    "three": ProcessMesh([3, 4, 5]), "square": ProcessMesh([[0, 1], [2, 3]]), "flat": ProcessMesh([[5, 4, 3]]),
    "all": ProcessMesh([[0, 1, 2], [3, 4, 5]]), "turned": ProcessMesh([[5, 0], [1, 4], [2, 3]]),
}
WHOLE = ProcessMesh([0, 1, 2, 3, 4, 5])
X = np.arange(35.0).reshape(5, 7)


@st.composite
def placed(draw):
    mesh = MESHES[draw(st.sampled_from(list(MESHES)))]
    return mesh, [draw(st.sampled_from([R, P, S(0), S(1)])) for _ in mesh.sizes]


@given(placed(), placed())
@settings(max_examples=60)
def test_the_value_arrives_whatever_the_meshes_and_placements(source, target):
    def run(_):
        x = shard_tensor(X, *source, dtype="float64")
        y = reshard(x, *target)
        assert (y.process_mesh, y.placements) == (target[0], target[1])
        back = reshard(y, *source)
        mine = [t.numpy() for t, (mesh, _) in ((y, target), (back, source)) if mesh.contains(current().rank)]
        assert all((value == X).all() for value in mine)
    simulate(WHOLE, run)


@given(placed(), placed(), st.sampled_from([(5, 7), (1, 4), (0, 3), (6, 6)]))
def test_the_blocks_of_a_plan_tile_every_window(source, target, shape):
    """Each element of each window of the target comes once, from a rank that holds it."""
    (a, src), (b, dst) = ((mesh, tuple(R if p is P else p for p in ps)) for mesh, ps in (source, target))
    for rank in b.process_ids:
        size, at = local_window(shape, b, dst, rank)
        seen = np.zeros(shape, int)
        for m in plan_across(shape, a, src, b, dst):
            if m.dst == rank:
                block = tuple(slice(o, o + n) for o, n in zip(m.offsets, m.shape, strict=True))
                seen[block] += 1
                n, o = local_window(shape, a, src, m.src)
                assert all(i <= j and j + k <= i + e for i, j, k, e in zip(o, m.offsets, m.shape, n, strict=True))
        wanted = np.zeros(shape, int)
        wanted[tuple(slice(o, o + n) for o, n in zip(at, size, strict=True))] = 1
        assert (seen == wanted).all()


@pytest.mark.parametrize("placements", [[R, R], [S(0), R], [S(1), S(0)], [R, S(1)]])
def test_for_equal_placements_every_rank_sends_to_its_like_once(placements):
    a, b = ProcessMesh([[0, 1], [2, 3]]), ProcessMesh([[4, 5], [6, 7]])
    plan = plan_across((6, 8), a, tuple(placements), b, tuple(placements))
    assert [(m.src, m.dst) for m in plan] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_who_holds_a_replica_takes_turns_and_who_has_it_keeps_it():
    plan = plan_across((4,), ProcessMesh([0, 1]), (R,), ProcessMesh([1, 2, 3, 4]), (R,))
    assert [(m.src, m.dst) for m in plan] == [(1, 1), (1, 2), (0, 3), (1, 4)]


@pytest.mark.parametrize(("src", "dst"), [([S(0)], [S(1)]), ([R], [S(0)]), ([P], [R]), ([S(1)], [P])])
def test_the_gradient_crosses_back(src, dst):
    """d/dx of sum((3x)^2) is 18x, on the mesh of x and as x was placed."""
    def run(_):
        x = shard_tensor(X, MESHES["two"], src, dtype="float64", stop_gradient=False)
        y = reshard(x * 3.0, MESHES["three"], dst)
        (y * y).sum().backward()
        if current().rank in (0, 1):
            return x.grad.process_mesh == MESHES["two"] and (x.grad.numpy() == 18 * X).all()
        return not y.process_mesh.contains(current().rank) or (y.numpy() == 3 * X).all()
    assert all(simulate(WHOLE, run))


def test_a_model_on_two_meshes_as_paddle_writes_it():
    """All ranks run the same lines; a rank outside of a mesh follows with shapes only, and communicates nothing."""
    first, second = ProcessMesh([0, 1]), ProcessMesh([2, 3])
    rng = np.random.default_rng(0)
    w1, w2, x = (rng.normal(size=shape) for shape in ((7, 8), (8, 3), (4, 7)))

    def run(_):
        a = shard_tensor(w1, first, [S(1)], stop_gradient=False)
        b = shard_tensor(w2, second, [S(0)], stop_gradient=False)
        hidden = shard_tensor(x, first, [R]).matmul(a).tanh()
        out = reshard(hidden, second, [S(1)]).matmul(b)
        out.sum().backward()
        return (a if current().rank < 2 else b).grad.numpy()
    log = []
    found = simulate("pp=2,tp=2", run, np.dtype("float64"), log)
    h = np.tanh(x @ w1)
    back = np.ones((4, 3)) @ w2.T * (1 - h * h)
    for rank, expected in enumerate([x.T @ back] * 2 + [h.T @ np.ones((4, 3))] * 2):
        np.testing.assert_allclose(found[rank], expected, rtol=1e-12)
    sent = [line for line in log if line.startswith("send")]
    assert sorted(sent) == ["send(f64[4, 4], tag=3000) from 0 to 2", "send(f64[4, 4], tag=3000) from 1 to 3",
                    "send(f64[4, 4], tag=3000) from 2 to 0", "send(f64[4, 4], tag=3000) from 3 to 1"]


def test_a_rank_outside_of_the_mesh_has_no_values():
    def run(_):
        x = shard_tensor(X, MESHES["two"], [S(0)]) * 2.0
        if current().rank == 5:
            with pytest.raises(TypeError) as caught:
                x.numpy()
            return repr(x.payload), list(x.shape), str(caught.value)
        return None
    assert simulate(WHOLE, run)[5] == (
        "f64[5_d0, 7]", [5, 7], "numpy(): expected a tensor of which rank 5 has a part, got f64[5, 7] on d0=2 of the "
        "ranks [0, 1]; ask on those, or reshard it to a mesh with this rank")


# --------------------------------------------------------------------------------------------------- gradients (D12)
@given(placed(), placed(), st.sampled_from(["square", "sum"]))
@settings(max_examples=40)
def test_gradients_cross_back_whatever_the_meshes_and_placements(source, target, loss):
    """Of sum((2x)^2) it is 8x, of sum(2x) it is 2, on the mesh of x and as x is placed (Partial: whole)."""
    def run(_):
        x = shard_tensor(X, *source, dtype="float64", stop_gradient=False)
        y = reshard(x * 2.0, *target)
        (y * y if loss == "square" else y).sum().backward()
        assert x.grad.process_mesh == source[0]
        assert x.grad.placements == [R if p.is_partial() else p for p in x.placements]
        if source[0].contains(current().rank):
            assert (x.grad.numpy() == (8 * X if loss == "square" else 2.0)).all()
    simulate(WHOLE, run)


@pytest.mark.parametrize(("src", "dst", "forward", "backward"), [
    # chunks go to one rank each, and are gathered there; the gradient is whole there, and each chunk of it goes back
    (S(0), R, {"send": 2, "all_gather": 2}, {"send": 2}),
    (R, S(0), {"send": 2}, {"send": 2, "all_gather": 2}),
    (S(0), S(1), {"send": 4}, {"send": 4}),             # a quarter from each to each
    (S(0), S(0), {"send": 2}, {"send": 2}),
    (R, R, {"send": 2}, {"send": 2}),
    # one rank gets the value; its gradient, which both have, goes back from both
    (R, P, {"send": 1}, {"send": 2}),
    # each rank's part of a sum goes, and is added up there; the gradient, which is not in parts, goes back
    (P, R, {"send": 2, "all_reduce": 2}, {"send": 2}),
    (P, S(0), {"send": 2, "reduce_scatter": 2}, {"send": 2, "all_gather": 2}),
], ids=str)
def test_what_crosses_back_is_the_transpose_of_what_has_crossed(src, dst, forward, backward):
    """Counted over the ranks of both meshes."""
    first, second = MESHES["two"], MESHES["other two"]
    x0, w = np.arange(24.0).reshape(4, 6), np.arange(24.0, 48).reshape(4, 6)

    def run(_):
        x = shard_tensor(x0, first, [src], dtype="float64", stop_gradient=False)
        y = reshard(x, second, [dst])
        there = Counter(current().comm.counts)
        g = shard_tensor(w, second, [R if dst is P else dst], dtype="float64")
        dx, = grad([y], [x], [g])
        assert dx.placements == [R if src is P else src] and dx.process_mesh == first
        back = Counter(current().comm.counts) - there
        if current().rank < 2:
            assert (dx.numpy() == w).all()
        return there, back
    for expected, *found in zip((forward, backward), *simulate(ProcessMesh([0, 1, 2, 3]), run), strict=True):
        total = sum(found, Counter())
        assert {k: n for k, n in total.items() if k != "recv"} == expected and total["recv"] == total["send"]
