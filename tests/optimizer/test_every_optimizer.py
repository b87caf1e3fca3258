"""Every optimizer in every mode: eager, compiled by each backend, on a mesh.  All make the same steps."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.executor import Executor
from minipd.framework.context import RankContext
from minipd.framework.meta import Meta
from minipd.framework.rank import enter, leave
from minipd.ir.traced import trace
from minipd.jit.stages import Options, run_stages
from minipd.optimizer import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)
from tests.dist.ranks import on_mesh

OPTIMIZERS = [
    (SGD, {}), (Momentum, {"use_nesterov": True}), (Adagrad, {}), (Adadelta, {"rho": 0.5}), (Adam, {"amsgrad": True}),
    (RMSProp, {"centered": True, "momentum": 0.5}), (AdamW, {}), (Adamax, {}), (NAdam, {}), (RAdam, {"beta2": 0.8}),
    (Lamb, {}), (ASGD, {"batch_num": 2}), (Rprop, {}),
]
every = pytest.mark.parametrize("optimizer,options", OPTIMIZERS)
X = [np.random.default_rng(i).normal(size=(5, 4)) for i in range(4)]


def build(optimizer, options, dtype="float64"):
    paddle.seed(4)
    layer = nn.Linear(4, 6, bias_attr=nn.initializer.Constant(0.5)).to(dtype=dtype)
    return layer, optimizer(0.05, parameters=layer.parameters(), **options)


def step_of(layer, optimizer):
    def step(x):
        loss = (layer(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss
    return step


def eagerly(optimizer, options):
    layer, made = build(optimizer, options)
    step = step_of(layer, made)
    for x in X:
        step(paddle.to_tensor(x))
    return [p.numpy() for p in layer.parameters()] + [t.numpy() for p in layer.parameters()
                                                      for t in made.state_of(p).values()]


@every
@pytest.mark.parametrize("backend", [None, "CINN"])
def test_compiled_steps_are_eager_ones(optimizer, options, backend):
    want = eagerly(optimizer, options)
    layer, made = build(optimizer, options)
    state = {p.name: p for p in layer.parameters()} | made.prepare()
    traced = trace(step_of(layer, made), Meta((5, 4), np.dtype("float64")), state=state)
    program = run_stages(run_stages(traced.program, Options(backend), "trace", "step"), Options(backend), "compile",
                         "step")
    executor = Executor(program)
    scope = {name: t.payload for name, t in state.items()}
    for x in X:
        executor.run({traced.inputs[0]: x}, scope)
    got = [scope[p.name] for p in layer.parameters()] + [scope[t.name] for p in layer.parameters()
                                                         for t in made.state_of(p).values()]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14)


@every
def test_steps_on_a_mesh_are_those_of_one_rank(optimizer, options):
    """A weight that is sharded, one way and the other, with gradients that every rank has a part of."""
    want = eagerly(optimizer, options)

    def run(mesh):
        layer, made = build(optimizer, options)
        shard_tensor(layer.weight, mesh, [Shard(0), Shard(1)])
        shard_tensor(layer.bias, mesh, [Replicate(), Shard(0)])
        step = step_of(layer, made)
        for x in X:
            step(shard_tensor(paddle.to_tensor(x), mesh, [Replicate(), Replicate()]))
        assert layer.weight.placements == [Shard(0), Shard(1)], "a parameter never moves"
        return [p.numpy() for p in layer.parameters()] + [t.numpy() for p in layer.parameters()
                                                          for t in made.state_of(p).values()]
    for got in on_mesh("x=2,y=2", run):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10, atol=1e-13)


@every
def test_parameters_that_miss_a_step_are_left_alone(optimizer, options):
    token = enter(RankContext())
    try:
        layer, made = build(optimizer, options)
        before = layer.bias.numpy()
        (layer.weight ** 2).sum().backward()
        made.step()
        assert (layer.bias.numpy() == before).all() and (layer.weight.grad.numpy() != 0).any()
        assert int(made.scalars()[1]) == 1 and made.state_dict()["missed_steps"] == {layer.bias.name: 1}
    finally:
        leave(token)
