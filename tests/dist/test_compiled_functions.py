"""`paddle.jit.to_static` and distributed tensors: a compiled function does what it does eagerly."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.dist.api import shard_layer, shard_tensor
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate

R = Replicate()
X = np.random.default_rng(0).normal(size=(5, 4))
W = np.random.default_rng(1).normal(size=(4, 3))
SQUARE = np.random.default_rng(2).normal(size=(4, 4))


def as_it_is(f):
    return f


def placed(x, mesh, placements, stop_gradient=False):
    return shard_tensor(paddle.to_tensor(x), mesh, placements, stop_gradient=stop_gradient)


def seen(t):
    """Values and where they are."""
    return None if t is None else (t.numpy(), str(t.payload))


def same(got, want, path="result"):
    assert type(got) is type(want), (path, got, want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), path
        for i, both in enumerate(zip(got, want, strict=True)):
            same(*both, f"{path}[{i}]")
    elif isinstance(want, np.ndarray):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12, err_msg=path)
    else:
        assert got == want, path


def both(mesh, function, compiled=paddle.jit.to_static):
    """What every rank finds, eagerly and compiled; returns the numbers of communications."""
    logs: tuple[list, list] = [], []
    want, got = (simulate(mesh, lambda m, how=how: function(m, how), dtype=np.dtype("float64"), log=log)
                 for how, log in zip((as_it_is, compiled), logs, strict=True))
    same(got, want)
    return tuple(map(len, logs))


# ------------------------------------------------------------------------------------------------------------ training
def by_columns_and_rows(net, mesh):
    for x, dim in ((net[0].weight, 1), (net[0].bias, 0), (net[2].weight, 0)):
        shard_tensor(x, mesh, [R, Shard(dim)])
    shard_layer(net, mesh)


@pytest.mark.parametrize("full_graph", [True, False])
@pytest.mark.parametrize("distribute", [lambda net, mesh: None, lambda net, mesh: shard_layer(net, mesh),
                                        by_columns_and_rows], ids=["plain", "replicated", "sharded"])
def test_training(distribute, full_graph):
    def run(mesh, how):
        paddle.seed(3)
        net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        distribute(net, mesh)
        opt = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
        found, f = [], how(net)
        for i in range(3):
            x = placed(X + i, mesh, [Shard(0), R])
            loss = (f(x) ** 2).mean()
            loss.backward()
            found.append((loss.item(), seen(x.grad), [seen(p.grad) for p in net.parameters()]))
            opt.step()
            opt.clear_grad()
        return found, [seen(p) for p in net.parameters()]
    eager, compiled = both("dp=2,tp=2", run, lambda f: paddle.jit.to_static(f, full_graph=full_graph))
    assert compiled == eager > 0


def test_batch_normalisation_moves_its_statistics():
    def run(mesh, how):
        net = nn.BatchNorm1D(4)
        shard_layer(net, mesh)
        f, x = how(net), placed(X, mesh, [Shard(0)])
        for _ in range(3):
            (f(x) ** 3).mean().backward()
        return [seen(t) for t in (net._mean, net._variance, net.weight.grad, x.grad)]
    both("dp=2", run)


def test_a_buffer_that_every_call_writes_is_remembered_as_it_was():
    class Doubling(nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("factor", paddle.ones([4]))

        def forward(self, x):
            y = self.linear(x) * self.factor
            self.factor.set_value(self.factor * 2.0 + x.mean(0))
            return y

    def run(mesh, how):
        paddle.seed(0)
        layer = shard_layer(Doubling(), mesh)
        f, x = how(layer), placed(X, mesh, [Shard(0)])
        first, second = f(x), f(x)
        first.sum().backward()
        second.sum().backward()
        return [seen(t) for t in (x.grad, layer.linear.weight.grad, layer.factor)]
    both("dp=2", run)


# --------------------------------------------------------------------------------------------- what functions may do
class Cubed(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensor()
        return g * x * x * 3.0


def branches(x):
    if x.sum() > 0:
        y = x * x
    else:
        y = x - 1.0
    if y.sum() < 0:
        y = y * x
    else:
        y = y * y * x
    return y


def loops(x):
    i = paddle.zeros([1], dtype="int64")
    while i < 3:
        x = paddle.tanh(x * 2.0)
        if x.sum() > 0:
            x = x * x
        else:
            x = x.exp()
        i = i + 1
    return x


def hooked(x):
    y = x * x
    y.register_hook(lambda g: g * 2.0)
    return y.sum(0)


FUNCTIONS = {
    "sums": lambda x: x.exp().sum(0), "matmul": lambda x: x.matmul(x, transpose_y=True), "branches": branches,
    "loops": loops, "dropout": lambda x: nn.functional.dropout(x, 0.5) * 3.0, "a PyLayer": lambda x: Cubed.apply(x),
    "a hook": hooked, "its placements": lambda x: x * (2.0 if x.placements[0].is_shard() else 3.0),
    "the argument": lambda x: x, "softmax": nn.functional.softmax,
    "a reshard": lambda x: dist.reshard(x * 2.0, x.process_mesh, [R, R]).tanh(),
    "parts": lambda x: paddle.concat([x[1:], x[:2]]),
}


@pytest.mark.parametrize("placements", [[Shard(0), R], [Shard(1), Shard(0)], [Partial(), R]], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, placements):
    def run(mesh, how):
        paddle.seed(5)
        x, f = placed(X, mesh, placements), how(FUNCTIONS[name])
        first, second = f(x), f(x * 2.0)
        (first * first).sum().backward()
        found = first, second, x.grad
        # a Partial input is whole in a program, so what is linear in it comes out whole, too
        return [seen(t) if placements[0] != Partial() else t.numpy() for t in found]
    both("dp=2,tp=2", run)


def test_second_derivatives():
    def run(mesh, how):
        x = placed(X, mesh, [Shard(0)])
        g, = paddle.grad(how(lambda x: (x * x * x).sum())(x), x, create_graph=True)
        h, = paddle.grad((g * g).sum(), x)
        return seen(g), seen(h)
    both("x=2", run)


def test_a_distributed_tensor_that_is_only_found_around_the_function():
    def run(mesh, how):
        w, x = placed(W, mesh, [Shard(0)]), paddle.to_tensor(X, stop_gradient=False)
        y = how(lambda x: x.matmul(w))(x)
        y.sum().backward()
        return seen(y), seen(w.grad), seen(x.grad)
    assert both("x=2", run) == (2, 2)


def test_an_argument_that_is_written():
    def add_one(x):
        x.add_(paddle.ones([1]))
        return x * 2.0

    def run(mesh, how):
        x = placed(X, mesh, [Shard(0)], stop_gradient=True)
        return seen(how(add_one)(x)), seen(x)
    both("x=2", run)


def test_meshes_that_are_a_part_of_the_ranks():
    def run(mesh, how):
        first, second = (dist.ProcessMesh([r], ["x"]) for r in (0, 1))
        x = placed(X, first, [R])
        y = how(lambda x: dist.reshard(x * x, second, [R]).tanh())(x)
        y.sum().backward()
        alone = how(lambda x: x.exp())(x)
        return [seen(dist.reshard(t, mesh, [R])) for t in (y, x.grad, alone)]
    both("x=2", run)


# ------------------------------------------------------------------------------------------------------ what is cached
def test_there_is_a_program_for_every_placement():
    def run(mesh):
        f, found = paddle.jit.to_static(lambda x: x.exp().sum(0)), []
        for placements in ([Shard(0)], [Shard(1)], [R], [Shard(0)], None):
            x = paddle.to_tensor(X) if placements is None else placed(X, mesh, placements, stop_gradient=True)
            y = f(x)
            np.testing.assert_allclose(y.numpy(), np.exp(X).sum(0))
            found.append((getattr(y, "placements", None), f.get_traced_count()))
        return found
    for found in simulate("x=2", run, dtype=np.dtype("float64")):
        assert found == [([Partial()], 1), ([Shard(0)], 2), ([R], 3), ([Partial()], 3), (None, 4)]


def test_a_parameter_that_is_placed_anew_makes_another_program():
    def run(mesh):
        layer = nn.Linear(4, 3)
        f, x = paddle.jit.to_static(layer), placed(X, mesh, [R], stop_gradient=True)
        found = [f(x).placements]
        want = f(x).numpy()
        shard_tensor(layer.weight, mesh, [Shard(1)])
        found.append(f(x).placements)
        np.testing.assert_allclose(f(x).numpy(), want)
        return found
    assert simulate("x=2", run) == [[[R], [Shard(1)]]] * 2


def test_a_distributed_tensor_has_no_open_sizes():
    def run(mesh):
        f = paddle.jit.to_static(lambda x: (x * 2.0).sum(0), input_spec=[paddle.static.InputSpec([None, 4], "float64")])
        for n in (5, 4, 1):
            np.testing.assert_allclose(f(placed(X[:n], mesh, [Shard(0)])).numpy(), 2 * X[:n].sum(0))
        with pytest.raises(ValueError, match="tensor 0"):
            f(placed(W, mesh, [Shard(0)]))
        return f.get_traced_count()
    assert simulate("x=2", run, dtype=np.dtype("float64")) == [3, 3]
