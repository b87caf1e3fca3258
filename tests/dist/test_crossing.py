"""Reshards from one mesh to another, on simulated ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
