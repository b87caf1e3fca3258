"""Optimizers and scalers over distributed parameters: the numbers of one rank."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd import amp, nn
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from tests.dist.ranks import on_mesh
from tests.dist.refused import refused

R, P, S0, S1 = Replicate(), Partial(), Shard(0), Shard(1)


# ----------------------------------------------------------------------------------------------------------- optimizers
def steps(mesh, wrap, kind=paddle.optimizer.AdamW, **options):
    paddle.seed(2)
    layer = nn.Linear(5, 4)
    if mesh is not None:
        dist.shard_tensor(layer.weight, mesh, [S1])
        dist.shard_tensor(layer.bias, mesh, [S0])
    optimizer = wrap(kind(0.1, parameters=layer.parameters(), **options))
    x = paddle.to_tensor(np.random.default_rng(0).normal(size=(3, 5)).astype("float32"))
    x = x if mesh is None else dist.shard_tensor(x, mesh, [R])
    for _ in range(3):
        (layer(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    return layer.weight.numpy(), optimizer


@pytest.mark.parametrize("kind", [paddle.optimizer.AdamW, paddle.optimizer.SGD, paddle.optimizer.Momentum])
@pytest.mark.parametrize("clip", [None, nn.ClipGradByGlobalNorm(0.05)])
def test_shard_optimizer(kind, clip):
    """Any optimizer; its state is where the parameter is."""
    def run(mesh):
        weight, optimizer = steps(mesh, dist.shard_optimizer, kind, grad_clip=clip)
        placed = {name: t.placements for name, t in optimizer.state_dict().items()
                  if isinstance(t, paddle.Tensor) and "w_0" in name and t.ndim == 2}
        assert isinstance(optimizer, kind) and optimizer._inner_opt._state is optimizer._state
        return weight, placed
    alone, _ = steps(None, lambda o: o, kind, grad_clip=clip)
    for weight, placed in on_mesh("x=2", run):
        np.testing.assert_allclose(weight, alone, rtol=1e-5, atol=1e-6)
        assert set(map(tuple, placed.values())) <= {(S1,)}


def test_a_function_places_the_state():
    """It stays there from step to step, and the numbers are the same."""
    def shard_fn(name, param, accumulator):
        return dist.shard_tensor(accumulator, param.process_mesh, [S0])

    def run(mesh):
        weight, optimizer = steps(mesh, lambda o: dist.shard_optimizer(o, shard_fn))
        moments = [t for name, t in optimizer.state_dict().items() if "moment" in name]
        return weight, [t.placements for t in moments]
    alone, _ = steps(None, lambda o: o)
    for weight, placed in on_mesh("x=2", run):
        np.testing.assert_allclose(weight, alone, rtol=1e-5, atol=1e-6)
        assert placed == [[S0]] * 4


@pytest.mark.parametrize(("function", "text"), [
    (lambda o, m: dist.shard_optimizer(3), "TypeError: shard_optimizer: expected an optimizer, got int"),
    (lambda o, m: dist.shard_optimizer(o, 3), "TypeError: shard_optimizer: expected a function shard_fn(name, param"),
    (lambda o, m: dist.shard_optimizer(o, gradient_accumulation_steps=0),
     "ValueError: shard_optimizer: expected gradient_accumulation_steps to be a positive int, got 0"),
    (lambda o, m: dist.shard_optimizer(dist.shard_optimizer(o)), "ValueError: shard_optimizer: expected an optimizer "
                                                                 "that is not sharded yet"),
    (lambda o, m: dist.shard_optimizer(o, dist.ShardingStage1("x", m)),
     "NotImplementedError: shard_optimizer: expected shard_fn to be None or a function, got ShardingStage1('x', shape "
     "[2], process_ids [0, 1], dim_names ['x']); sharding stages are not part of this version"),
    (lambda o, m: dist.ShardingStage3("x")("moment1", None, None), "NotImplementedError: ShardingStage3('x', None): "),
    (lambda o, m: dist.shard_scaler(o), "TypeError: shard_scaler: expected a GradScaler"),
])
def test_refused_optimizers(function, text):
    assert refused(lambda m: function(paddle.optimizer.SGD(0.1, parameters=[paddle.create_parameter([2], "float32")]),
                                      m)).startswith(text)


def two_stages(mesh):
    """A parameter on each of two meshes of one rank."""
    one = nn.initializer.Constant(1.0)
    return [dist.shard_tensor(paddle.create_parameter([2], "float32", default_initializer=one), mesh[i:i + 1], [R])
            for i in range(2)]


@pytest.mark.parametrize("bad", [False, True])
def test_a_scaler_decides_for_all_meshes(bad):
    """An infinity in the gradients of one stage: neither steps, and the scale is halved on both."""
    def run(mesh):
        w = two_stages(mesh)
        sgd = dist.shard_optimizer(paddle.optimizer.SGD(1.0, parameters=w))
        scaler = dist.shard_scaler(amp.GradScaler(init_loss_scaling=4.0, incr_every_n_steps=1))
        if bad:
            scaler.scale((w[1] * np.inf).sum()).backward()
            scaler.scale((w[0] * 2.0).sum()).backward()
        else:
            scaler.scale((dist.reshard(w[0] * 3.0, mesh[1:2], [R]) * w[1]).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        return w[current().rank].tolist(), scaler.get_init_loss_scaling()
    assert on_mesh("pp=2", run) == ([([1.0, 1.0], 2.0)] * 2 if bad else [([-2.0, -2.0], 8.0)] * 2)


def test_a_scaler_divides_every_gradient_once():
    """Also that of a parameter which is on none of several meshes; and not again where `unscale_` is refused."""
    def run(mesh):
        w, plain = two_stages(mesh), paddle.create_parameter([2], "float32")
        sgd = paddle.optimizer.SGD(1.0, parameters=[*w, plain])
        scaler = dist.shard_scaler(amp.GradScaler(init_loss_scaling=4.0))
        for p in (*w, plain):
            scaler.scale((p * 2.0).sum()).backward()
        scaler.unscale_(sgd)
        with pytest.raises(RuntimeError, match="have been unscaled already"):
            scaler.unscale_(sgd)
        return w[current().rank].grad.tolist(), plain.grad.tolist()
    assert on_mesh("pp=2", run) == [([2.0, 2.0], [2.0, 2.0])] * 2
