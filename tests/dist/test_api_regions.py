"""Regions of local code, and parts of a mesh: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api.submeshes import split_mesh
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.static import InputSpec
from tests.dist.ranks import on_mesh
from tests.dist.refused import refused

R, P, S0, S1 = Replicate(), Partial(), Shard(0), Shard(1)


# ------------------------------------------------------------------------------------------------ local and global
@pytest.mark.parametrize("uneven", [4, 5])
def test_gradients_through_local_code(uneven):
    """y = f(x) row by row on what each rank has: the gradient of one rank."""
    x0 = np.random.default_rng(1).normal(size=(uneven, 3))

    def f(x):
        return (x * x).sin()

    def run(mesh):
        x = dist.shard_tensor(x0, mesh, [S0], stop_gradient=False)
        y = dist.dtensor_from_local(f(dist.dtensor_to_local(x * 2.0)), mesh, [S0], x.shape)
        (y * y).sum().backward()
        return y.numpy(), x.grad.numpy(), x.grad.placements
    x = paddle.to_tensor(x0, stop_gradient=False)
    y = f(x * 2.0)
    (y * y).sum().backward()
    for got, grad, placed in on_mesh("x=2", run):
        np.testing.assert_allclose(got, y.numpy(), rtol=1e-12)
        np.testing.assert_allclose(grad, x.grad.numpy(), rtol=1e-12)
        assert placed == [S0]


def test_a_sum_of_locals_gives_each_the_whole_gradient():
    def run(mesh):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        total = dist.dtensor_from_local(x * (current().rank + 1.0), mesh, [P])
        (total * dist.shard_tensor([1.0, 10.0], mesh, [R])).sum().backward()
        return x.grad.tolist()
    assert on_mesh("x=2", run) == [[1.0, 10.0], [2.0, 20.0]]


def test_placements_of_a_local_gradient():
    """Ranks that use a replicated value for something else each: their gradients are terms of a sum."""
    def run(mesh, placements):
        x = dist.shard_tensor([1.0, 2.0], mesh, [R], stop_gradient=False)
        (dist.dtensor_to_local(x, mesh, placements) * (current().rank + 1.0)).sum().backward()
        return x.grad.tolist()
    assert on_mesh("x=2", lambda m: run(m, [P])) == [[3.0, 3.0]] * 2
    assert on_mesh("x=2", lambda m: run(m, None)) == [[1.0, 1.0], [2.0, 2.0]], "said to be the same, and taken for it"


def test_twice_differentiable():
    def run(mesh):
        x = dist.shard_tensor([1.0, 2.0, 3.0], mesh, [S0], stop_gradient=False)
        y = dist.dtensor_from_local(dist.dtensor_to_local(x) ** 3, mesh, [S0], [3])
        g, = paddle.grad(y.sum(), x, create_graph=True)
        h, = paddle.grad(g.sum(), x)
        return g.tolist(), h.tolist()
    assert on_mesh("x=2", run) == [([3.0, 12.0, 27.0], [6.0, 12.0, 18.0])] * 2


class Masked(dist.LocalLayer):
    """Each rank's own weighted mean of its rows, and what it counted."""

    def forward(self, x, scale):
        return {"mean": (x * scale).sum() / 4.0, "rows": [x * 2.0]}


def test_local_layer():
    x0 = np.arange(8.0)

    def run(mesh):
        layer = Masked([(mesh, [P]), (mesh, [S0])], [None, (mesh, [P])])
        x = dist.shard_tensor(x0, mesh, [S0], stop_gradient=False)
        scale = dist.shard_tensor(3.0, mesh, [R], stop_gradient=False)
        out = layer(x, scale)
        (out["mean"] + out["rows"][0].sum()).backward()
        return out["mean"].item(), out["rows"][0].tolist(), x.grad.tolist(), scale.grad.item()
    assert on_mesh("x=2", run) == [(21.0, (x0 * 2).tolist(), [2.75] * 8, 7.0)] * 2


def test_local_map():
    def f(pair, y, k=1.0):
        return pair[0] @ pair[1] * k, "text", y + 1.0

    def run(mesh):
        a, b = np.arange(6.0).reshape(2, 3), np.ones((3, 2))
        g = dist.local_map(f, [[P], None, [R]], [[S1], [S0], None], reshard_inputs=True)
        x = dist.shard_tensor(a, mesh, [R], stop_gradient=False)
        out, text, plain = g((x, dist.shard_tensor(b, mesh, [S0])), paddle.ones([1]), k=2.0)
        out.sum().backward()
        return out.tolist(), text, plain.placements, x.grad.tolist()
    assert on_mesh("x=2", run) == [([[6.0, 6.0], [24.0, 24.0]], "text", [R], [[4.0] * 3] * 2)] * 2


def test_local_map_of_ordinary_tensors():
    def run(mesh):
        make = dist.local_map(lambda n: paddle.full([n], current().rank), [[S0]], process_mesh=mesh)
        return make(2).tolist()
    assert on_mesh("x=2", run) == [[0.0, 0.0, 1.0, 1.0]] * 2


@pytest.mark.parametrize(("function", "text"), [
    (lambda m: dist.LocalLayer([(m, [P])], [None])(paddle.ones([1]), paddle.ones([1])),
     "ValueError: LocalLayer: expected 1 inputs, one for each of grad_dist_attrs, got 2"),
    (lambda m: Masked([(m, [P])], [None, None])(paddle.ones([1]), paddle.ones([1])),
     "ValueError: Masked: expected 1 results, one for each of out_dist_attrs, got 2"),
    (lambda m: dist.LocalLayer([[P]], [None]), "TypeError: LocalLayer: expected out_dist_attrs to be a list of "
                                               "(ProcessMesh, placements), got [Partial(reduce_type=SUM)]"),
    (lambda m: dist.local_map(lambda x: x, [[R]], [[R], [R]])(paddle.ones([1])),
     "ValueError: local_map: expected 2 arguments, one for each of in_placements, got 1"),
    (lambda m: dist.local_map(lambda x: x, [[R]], [[R]])(dist.shard_tensor(np.ones(4), m, [S0])),
     "ValueError: local_map: expected argument 0 with the placements [Replicate()] on x=2, got f64[4_x] on x=2; pass "
     "reshard_inputs=True to have it changed"),
    (lambda m: dist.local_map(lambda x: 1, [[R]])(dist.shard_tensor(np.ones(4), m, [S0])),
     "ValueError: local_map: expected result 0 to be an ordinary tensor, to be placed as [Replicate()], got 1"),
    (lambda m: dist.local_map(lambda x: (x, x), [[R]])(dist.shard_tensor(np.ones(4), m, [S0])),
     "ValueError: local_map: expected 1 results, one for each of out_placements, got 2"),
    (lambda m: dist.local_map(lambda: paddle.ones([1]), [[R]])(),
     "ValueError: local_map: expected a mesh for the placements [Replicate()] of result 0, got no distributed argument "
     "and no process_mesh; pass process_mesh"),
])
def test_refused_regions(function, text):
    assert refused(function).startswith(text)


# ---------------------------------------------------------------------------------------------------- parts of a mesh
@pytest.mark.parametrize("along", [S0, S1, R], ids=str)
def test_parts_and_back(along):
    """5 rows and 3 columns over two parts, each of two ranks; the gradient comes back through both."""
    x0 = np.arange(15.0).reshape(5, 3)

    def run(mesh):
        inner = S1 if along is S0 else S0
        x = dist.shard_tensor(x0, mesh, [along, inner], stop_gradient=False)
        parts = dist.moe_sub_mesh_tensors(x * 1.0, mesh, 0, [along, inner])
        back = dist.moe_global_mesh_tensor([p * 3.0 for p in parts], mesh, [along, inner], 0)
        (back * back).sum().backward()
        mine = parts[current().rank // 2]
        return [list(p.shape) for p in parts], mine.numpy(), back.numpy(), x.grad.numpy(), back.placements
    halves = [x0, x0] if along is R else [x0[:3], x0[3:]] if along is S0 else [x0[:, :2], x0[:, 2:]]
    for rank, (shapes, mine, back, grad, placed) in enumerate(on_mesh("ep=2,dp=2", run)):
        assert shapes == [list(h.shape) for h in halves]
        np.testing.assert_array_equal(mine, halves[rank // 2])
        np.testing.assert_array_equal(back, x0 * 3)
        # what both parts have is used by both: the gradient is the sum of theirs
        np.testing.assert_array_equal(grad, x0 * 18 * (2 if along is R else 1))
        assert placed[0] == along


def test_parts_that_do_not_fit():
    def join(mesh, sizes, placements=(S0,)):
        parts = [dist.shard_tensor(np.ones(n), m, [R]) for n, m in zip(sizes, split_mesh(mesh, 0), strict=False)]
        return dist.moe_global_mesh_tensor(parts, mesh, list(placements), 0)
    assert refused(lambda m: join(m, [2])).startswith(
        "ValueError: moe_global_mesh_tensor: expected 2 tensors, one for each part of x=2 along x, got 1")
    assert "expected a local shape [2] on rank 0 for [4_x]" in refused(lambda m: join(m, [1, 3]))


@pytest.mark.parametrize("function", [
    lambda m, x: Masked([(m, [P])], [None, None])(x, x), lambda m, x: dist.local_map(lambda y: y, [[R]])(x),
    lambda m, x: dist.dtensor_from_local(x, m, [R]), lambda m, x: dist.dtensor_to_local(x)])
def test_a_program_has_no_local_values(function):
    assert "expected values, got f32[2] of a program; a program has global values" in refused(
        lambda m: trace(lambda x: function(m, x), InputSpec([2], "float32")))


@pytest.mark.parametrize("by", ["layer", "map"])
def test_local_code_on_a_stage_that_others_follow(by):
    """The second stage's loss is local code; the first one's ranks follow it with shapes, and get their gradient."""
    class Loss(dist.LocalLayer):
        def forward(self, x, y):
            return F.dropout((x - y) ** 2, 0.0).sum()

    x0, y0 = np.arange(8.0).reshape(4, 2), np.ones((4, 2))

    def run(mesh):
        first, second = mesh[0], mesh[1]
        x = dist.shard_tensor(x0, first, [S0], stop_gradient=False)
        y = dist.shard_tensor(y0, second, [S0])
        h = dist.reshard(x * 3.0, second, [S0])
        if by == "layer":
            loss = Loss([(second, [P])], [None, None])(h, y)
        else:
            loss = dist.local_map(lambda a, b: ((a - b) ** 2).sum(), [[P]], [[S0], [S0]])(h, y)
        loss.backward()
        return x.grad.numpy() if current().rank < 2 else loss.item()
    found = on_mesh("pp=2,dp=2", run)
    for grad in found[:2]:
        np.testing.assert_allclose(grad, 6.0 * (3 * x0 - 1))
    assert found[2:] == [((3 * x0 - 1) ** 2).sum()] * 2


def test_uneven_parts_cannot_be_followed():
    def run(mesh):
        x = dist.shard_tensor(np.ones(3), mesh[0], [S0])
        if current().rank < 2:
            return dist.dtensor_to_local(x).shape
        with pytest.raises(NotImplementedError, match=r"expected equal parts .* without this rank, [23], .* got "
                                                      r"f64\[3_dp\] on dp=2 of the ranks \[0, 1\]"):
            dist.dtensor_to_local(x)
        return None
    assert on_mesh("pp=2,dp=2", run) == [[2], [1], None, None]
