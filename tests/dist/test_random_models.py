"""Random small models, laid out at random over random meshes, give what one rank gives: the loss, the gradient of
every parameter and of the data, and every parameter after two steps of an optimizer, to 1e-10 in float64.  Compiled,
the programs of the ranks give the loss and the gradients.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd.engine import grad
from minipd.dist.api import shard_tensor
from minipd.framework.rank import current
from tests.dist.both import static
from tests.dist.random_models import Layout, Model, forward, optimizer, random_layout, random_model
from tests.dist.ranks import on_mesh

COUNT, ALL = 25, 400


def alone(model: Model) -> dict[str, np.ndarray]:
    """The loss, gradients and updated parameters on one rank."""
    paddle.seed(7)
    held = {n: paddle.create_parameter(v.shape, "float64", default_initializer=paddle.nn.initializer.Assign(v))
            for n, v in model.parameters.items()}
    x = paddle.to_tensor(model.data, stop_gradient=model.data.dtype.kind != "f")
    return trained(model, x, held, forward(model, x, held))


def trained(model, x, held, loss):
    def here(t):
        return not hasattr(t.payload, "mesh") or t.payload.mesh.contains(current().rank)
    found = {}
    if here(loss):
        found["loss"] = loss.numpy()
    loss.backward()
    update = optimizer(model, list(held.values()))
    for n, t in {"data": x, **held}.items():
        if here(t) and t.grad is not None:
            found[f"gradient of {n}"] = t.grad.numpy()
    update.step()
    update.step()                       # with the count and the state that the first one left
    return found | {n: t.numpy() for n, t in held.items() if here(t)}


def spread(model: Model, layout: Layout) -> list[dict[str, np.ndarray]]:
    """The same on every rank of a mesh."""
    def run(mesh):
        paddle.seed(7)
        stage = {n: s for s, each in zip(layout.stages, (*model.layers, model.loss), strict=True)
                 for n in each.parameters}
        held = {n: shard_tensor(paddle.create_parameter(v.shape, "float64",
                                                        default_initializer=paddle.nn.initializer.Assign(v)),
                                layout.stage(stage[n]), layout.parameters[n]) for n, v in model.parameters.items()}
        x = shard_tensor(paddle.to_tensor(model.data), layout.stage(0), layout.data,
                         stop_gradient=model.data.dtype.kind != "f")
        return trained(model, x, held, forward(model, x, held, layout))
    return on_mesh(layout.mesh, run)


def check(seed: int) -> None:
    model = random_model(seed)
    layout = random_layout(model, seed)
    wanted = alone(model)
    context = f"model {seed}: {model}\n{layout}"
    try:
        found = spread(model, layout)
    except Exception as error:
        error.add_note(context)
        raise
    for name, value in wanted.items():
        holders = [f[name] for f in found if name in f]
        assert holders, f"{name} on no rank; {context}"
        for got in holders:
            assert got.shape == value.shape, (name, context)
            largest = np.abs(value).max(initial=1e-3)
            assert np.abs(got - value).max(initial=0) <= 1e-10 * largest, (name, context, got, value)


def check_compiled(seed: int) -> None:
    """The loss and the gradients, out of the programs of the ranks."""
    model = random_model(seed)
    if any(each.name == "dropout" for each in model.layers):            # what a program draws, its run decides
        return
    layout = random_layout(model, seed, stages=False, partial=False)
    names = list(model.parameters)
    first = [] if model.data.dtype.kind != "f" else [0]

    def run(x, *parameters, layout=None):
        loss = forward(model, x, dict(zip(names, parameters, strict=True)), layout)
        return loss, *grad(loss, [[x, *parameters][i] for i in (*first, *range(1, len(names) + 1))], allow_unused=True)
    given = [(model.data, layout.data), *((v, layout.parameters[n]) for n, v in model.parameters.items())]
    wanted = run(*(paddle.to_tensor(v, stop_gradient=v.dtype.kind != "f") for v, _ in given))
    context = f"model {seed}: {model}\n{layout}"
    try:
        found = static(layout.mesh, functools.partial(run, layout=layout), *given)
    except Exception as error:
        error.add_note(context)
        raise
    for got, value in zip(found, [t.numpy() for t in wanted if t is not None], strict=True):
        largest = np.abs(value).max(initial=1e-3)
        assert np.abs(got - value).max(initial=0) <= 1e-10 * largest, (context, got, value)


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_model_on_a_mesh(seed):
    check(seed)


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_compiled_model_on_a_mesh(seed):
    check_compiled(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(COUNT, ALL))
def test_more_compiled_models_on_meshes(seed):
    check_compiled(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(COUNT, ALL))
def test_more_models_on_meshes(seed):
    check(seed)
