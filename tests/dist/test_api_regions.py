"""Regions of local code, and parts of a mesh: values and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api.submeshes import split_mesh
from minipd.dist.completion import complete
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.static.passes import stages
from minipd.dist.static.step import trace_step
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
def test_a_program_that_does_not_know_its_placements_has_no_local_values(function):
    assert "expected a trace that knows where its values are, got f32[2] of one that has global values only" in refused(
        lambda m: trace(lambda x: function(m, x), InputSpec([2], "float32")))


class Own(dist.LocalLayer):
    """What each rank makes of its part."""

    def forward(self, x, w):
        return paddle.tanh(x.matmul(w)).sum(0) * (current().rank + 1.0), x * x.max()


def by_layer(mesh, placements, x, w):
    terms = [P if p == S0 else R for p in placements]
    return Own([(mesh, terms), (mesh, placements)], [None, (mesh, terms)])(x, w)


def by_map(mesh, placements, x, w):
    terms = [P if p == S0 else R for p in placements]
    return dist.local_map(lambda x, w: (x.matmul(w).sum(0), x * x), [terms, placements])(x, w)


def by_functions(mesh, placements, x, w):
    terms = [P if p == S0 else R for p in placements]
    local = dist.dtensor_to_local(x) * 3.0
    return (dist.dtensor_from_local(local.matmul(dist.dtensor_to_local(w, mesh, terms)).sum(0), mesh, terms),
            dist.dtensor_from_local(local, mesh, placements, x.shape))


@pytest.mark.parametrize("placements", [[S0, R], [R, S0], [S0, S0]], ids=str)
@pytest.mark.parametrize("region", [by_layer, by_map, by_functions])
def test_local_code_in_a_compiled_function(region, placements):
    """Values, gradients and what is communicated are those of eager execution, for uneven parts too."""
    x0, w0 = (np.random.default_rng(n).normal(size=(n, 4)) for n in (5, 4))

    def run(mesh, compiled):
        x, w = (dist.shard_tensor(each, mesh, p, stop_gradient=False) for each, p in ((x0, placements), (w0, [R, R])))

        def f(x, w):
            total, rows = region(mesh, placements, x * 2.0, w)
            return total.tanh().sum() + (rows * rows).mean()
        loss = (paddle.jit.to_static(f) if compiled else f)(x, w)
        loss.backward()
        return loss.numpy(), x.grad.numpy(), w.grad.numpy(), str(x.grad.placements), str(w.grad.placements)
    want, got = (on_mesh("dp=2,tp=2", lambda m, how=how: run(m, how)) for how in (False, True))
    for (*values, x_placed, w_placed), (*found, x_there, w_there) in zip(want, got, strict=True):
        for a, b in zip(found, values, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        assert (x_there, w_there) == (x_placed, w_placed)


class _Input:
    def __init__(self, name, mesh, placements):
        self.name, self.shape, self.dtype, self.placed = name, (4, 2), np.dtype("float64"), (mesh, placements)
        self.stop_gradient = True


class WithLocalCode(paddle.nn.Layer):
    def __init__(self, mesh):
        super().__init__()
        self.first, self.last = paddle.nn.Linear(4, 6), paddle.nn.Linear(6, 2)
        self.own = dist.local_map(lambda x: F.normalize(x - x.mean(1, keepdim=True)), [[S0]], [[S0]])
        dist.shard_layer(self, mesh)

    def forward(self, x):
        return self.last(self.own(self.first(x)))


def test_training_local_code_as_a_program():
    x0, y0 = np.random.default_rng(1).normal(size=(5, 4)), np.random.default_rng(2).normal(size=(5, 2))

    def run(mesh, programs):
        paddle.seed(1)
        layer, loss = WithLocalCode(mesh), paddle.nn.MSELoss()
        opt = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
        x, y = (dist.shard_tensor(each, mesh, [S0]) for each in (x0, y0))
        model, losses = dist.to_static(layer, None, loss, opt) if programs else None, []
        for _ in range(3):
            if model is not None:
                losses.append(float(model(x, y)))
                continue
            out = loss(layer(x), y)
            out.backward()
            opt.step()
            opt.clear_grad()
            losses.append(out.item())
        return losses, [p.numpy() for p in layer.parameters()]
    want, got = (on_mesh("dp=2", lambda m, how=how: run(m, how)) for how in (False, True))
    for (losses, values), (found, others) in zip(want, got, strict=True):
        np.testing.assert_allclose(found, losses, rtol=1e-12)
        for a, b in zip(others, values, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_stages_of_a_program_with_local_code_of_another_mesh():
    """A rank without it has nothing of it: neither what it reads nor what it makes."""
    def run(mesh):
        first, second = mesh[0], mesh[1]

        def f(x, y):
            h = dist.local_map(lambda a: (a * a).tanh(), [[S0]], [[S0]])(x)
            return dist.reshard(h, second, [R]) * y
        specs = [_Input("x", first, (S0,)), _Input("y", second, (R,))]
        step = trace_step("predict", f, None, None, specs, [])
        complete(step.program, None, lambda op: None)
        return [op.name().split(".")[1] for op in stages(step.program)["dist2dense_pass"].walk()]
    found = on_mesh("pp=2,dp=2", run)
    assert all(names[:3] == ["data", "multiply", "tanh"] and "p2p_send" in names for names in found[:2])
    assert all("tanh" not in names and "p2p_recv" in names for names in found[2:])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("by", ["layer", "map"])
def test_local_code_on_a_stage_that_others_follow(by, compiled):
    """The second stage's loss is local code; the first one's ranks follow it with shapes, and get their gradient."""
    class Loss(dist.LocalLayer):
        def forward(self, x, y):
            return F.dropout((x - y) ** 2, 0.0).sum()

    x0, y0 = np.arange(8.0).reshape(4, 2), np.ones((4, 2))

    def run(mesh):
        first, second = mesh[0], mesh[1]
        x = dist.shard_tensor(x0, first, [S0], stop_gradient=False)
        y = dist.shard_tensor(y0, second, [S0])

        def f(x, y):
            h = dist.reshard(x * 3.0, second, [S0])
            if by == "layer":
                return Loss([(second, [P])], [None, None])(h, y)
            return dist.local_map(lambda a, b: ((a - b) ** 2).sum(), [[P]], [[S0], [S0]])(h, y)
        loss = (paddle.jit.to_static(f) if compiled else f)(x, y)
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
