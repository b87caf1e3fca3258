"""Random numbers on any mesh are those of one rank: initial values and dropout (hard case E5)."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from minipd.dist.mesh import parse_mesh
from minipd.framework.rank import current
from minipd.models.llama import MLP, LlamaForCausalLM
from minipd.models.placements import batch_placements, parameter_placements
from minipd.nn import functional as F
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.nn.parameter import LazyGuard
from minipd.optimizer import AdamW
from minipd.parallel.step import EagerStep, shard_model
from tests.dist.ranks import on_mesh
from tests.models.llamas import filled
from tests.parity.pipeline_runs import FIVE, batches, pipeline, pipeline_run
from tests.parity.runs import BETAS, CLIP, DECAY, EPSILON, RATE, parameters
from tests.parity.test_parity import FLOAT64, close
from tests.parity.test_pipeline import each_way, united

STEPS, N_MICRO = batches(FIVE, b=4), 2


class Forgetful(MLP):
    """An MLP of which half the results are dropped."""

    def forward(self, x):
        return F.dropout(super().forward(x), 0.5, training=True)


def forgetful():
    model = filled(FIVE, parameters(FIVE))
    current().rng.seed(11)
    for layer in model.llama.layers:
        layer.mlp.__class__ = Forgetful
    return model


@functools.cache
def one_rank():
    """Losses and final parameters of one rank with the same micro-batches."""
    def run(mesh):
        model = forgetful()
        mine = shard_model(model, mesh, parameter_placements)
        optimizer = AdamW(RATE, *BETAS, epsilon=EPSILON, parameters=list(mine.values()), weight_decay=DECAY,
                          grad_clip=ClipGradByGlobalNorm(CLIP))
        step = EagerStep(model, optimizer, mesh, batch_placements(mesh), N_MICRO)
        losses = [step.share(step(ids, labels)) for ids, labels in STEPS]
        return losses, {n: p.numpy() for n, p in mine.items()}
    return on_mesh("dp=1", run, FLOAT64)[0]


@each_way("pp=2", "pp=2", "dp=2,pp=2", "pp=2,tp=2")
def test_dropout_drops_what_one_rank_drops(mesh, way):
    """A key is named by step, micro-batch and layer: it does not matter which stage draws, nor what others drew."""
    losses, expected = one_rank()
    assert len(set(losses)) == 3
    runs = on_mesh(mesh, lambda m: pipeline_run(FIVE, m, way, STEPS, N_MICRO, model=forgetful()), FLOAT64)
    for run in runs:
        np.testing.assert_allclose(run.losses, losses, rtol=1e-10)
    close(united(runs, "parameters"), expected, 1e-10)


@pytest.mark.parametrize("mesh", ["pp=2,tp=2", "dp=2,pp=3"])
def test_initial_values_are_those_of_one_rank(mesh):
    """To the bit, and a rank fills only what it holds."""
    def made(m):
        current().rng.seed(5)
        with LazyGuard():
            model = LlamaForCausalLM(FIVE)
        if m is None:
            for p in model.parameters():
                p.initialize()
            return {n: p.numpy() for n, p in model.named_parameters()}
        step = pipeline(model, m, "eager", 4, N_MICRO)
        empty = [n for n, p in model.named_parameters() if n not in step.parameters()]
        assert empty and all(not hasattr(p.payload, "local") for n, p in model.named_parameters() if n in empty)
        return {n: p.numpy() for n, p in step.parameters().items()}
    expected = on_mesh(parse_mesh("dp=1"), lambda m: made(None), FLOAT64)[0]
    found = {}
    for run in on_mesh(mesh, made, FLOAT64):
        for name, value in run.items():
            np.testing.assert_array_equal(value, expected[name], err_msg=name)
            found[name] = value
    assert found.keys() == expected.keys()
