"""Parity of pipelines: any mix of dp, tp and pp, eager, static and compiled, equals plain numpy in loss, every gradient
by name, and all parameters after some AdamW steps (hard cases E3, E4, E11, E15).
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from minipd.models.config import ModelConfig
from minipd.models.placements import stage_of
from tests.dist.ranks import on_mesh
from tests.models.llamas import filled, oracle_config
from tests.oracles import llama_numpy as oracle
from tests.parity.pipeline_runs import FIVE, Batches, Run, batches, pipeline_run
from tests.parity.runs import numpy_run, parameters
from tests.parity.test_parity import FLOAT64, WAYS, close

STEPS = batches(FIVE)


@pytest.fixture(scope="module")
def reference():
    return numpy_run(FIVE, STEPS)


def united(runs: list[Run], what: str) -> dict[str, np.ndarray]:
    """What the stages know together; ranks that know the same agree on it to the bit."""
    found: dict[str, np.ndarray] = {}
    for run in runs:
        for name, value in getattr(run, what).items():
            np.testing.assert_array_equal(value, found.setdefault(name, value), err_msg=name)
    return found


def compare(runs: list[Run], expected, config: ModelConfig = FIVE, data: Batches = STEPS) -> None:
    evaluated, _ = oracle.loss_and_grads(expected.parameters, *data[-1], oracle_config(config))
    for run in runs:
        np.testing.assert_allclose(run.losses, expected.losses, rtol=1e-10)
        assert run.evaluated == pytest.approx(evaluated, rel=1e-10)
    close(united(runs, "gradients"), expected.gradients, 1e-10)
    close(united(runs, "parameters"), expected.parameters, 1e-10)
    replicated: dict[str, bytes] = {}
    for run in runs:                                    # over tp, and over dp (hard case E4)
        for name, held in run.replicated.items():
            assert replicated.setdefault(name, held) == held, name


def each_way(compiled: str, *meshes: str) -> pytest.MarkDecorator:
    """Every mesh in every way; compiling takes longest, and once is enough but for the long tests: on the mesh
    `compiled`.  (What is compiled is the program that runs as "static", group by group.)"""
    return pytest.mark.parametrize(("mesh", "way"), [
        pytest.param(mesh, way, marks=[pytest.mark.long] if way == "cinn" and mesh != compiled else [])
        for mesh in meshes for way in WAYS])


@each_way("pp=2,tp=2", "pp=2", "pp=2,tp=2", "dp=2,tp=2,pp=2")
def test_five_layers_on_two_stages_with_three_micro_batches(reference, mesh, way):
    schedule = "FThenB" if mesh == "pp=2" else "1F1B"
    compare(on_mesh(mesh, lambda m: pipeline_run(FIVE, m, way, STEPS, 3, schedule), FLOAT64), reference)


@pytest.mark.parametrize("mesh", ["dp=2,pp=2", "tp=2,pp=2", "pp=2,dp=2,tp=2", "tp=2,pp=2,dp=2", "dp=1,tp=1,pp=5"])
def test_axes_in_any_order(reference, mesh):
    compare(on_mesh(mesh, lambda m: pipeline_run(FIVE, m, "eager", STEPS, 3), FLOAT64), reference)


@pytest.mark.parametrize("n_micro", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("schedule", ["1F1B", "FThenB"])
def test_four_stages_with_any_number_of_micro_batches(n_micro, schedule):
    """Five layers on four stages are 2, 1, 1, 1 (pytorch/torchtitan #775, pytorch PR #129597)."""
    data = batches(FIVE, b=n_micro, steps=1) if n_micro > 1 else batches(FIVE, b=2, steps=1)
    runs = on_mesh("pp=4", lambda m: pipeline_run(FIVE, m, "eager", data, n_micro, schedule), FLOAT64)
    compare(runs, numpy_run(FIVE, data), data=data)
    kept = [run.counts for run in runs]
    assert kept == [{"all_reduce": 1, "send": n_micro, "recv": n_micro}, *[
        {"all_reduce": 1, "send": 2 * n_micro, "recv": 2 * n_micro}] * 2,
        {"all_reduce": 1, "send": n_micro, "recv": n_micro}]


@pytest.mark.parametrize("way", WAYS)
def test_a_micro_batch_without_labels_adds_nothing(way):
    """Its part of the loss is 0, and its gradients are zeros; the mean is over the tokens that count."""
    ids, labels = batches(FIVE, b=4, steps=1)[0]
    labels[:2] = -100
    data = [(ids, labels)]
    runs = on_mesh("pp=2", lambda m: pipeline_run(FIVE, m, way, data, 2), FLOAT64)
    compare(runs, numpy_run(FIVE, data), data=data)


@each_way("pp=3", "pp=2,tp=2", "pp=3", "dp=2,pp=2")
def test_an_embedding_that_is_the_output_layer_too(mesh, way):
    """The first stage and the last have a copy; gradients add up, the norm counts one, and the copies stay equal."""
    config = dataclasses.replace(FIVE, tie_embeddings=True, kv_heads=4)
    runs = on_mesh(mesh, lambda m: pipeline_run(config, m, way, STEPS[:2], 2), FLOAT64)
    compare(runs, numpy_run(config, STEPS[:2]), config, STEPS[:2])
    holders = [i for i, run in enumerate(runs) if "llama.embed_tokens.weight" in run.parameters]
    assert len(holders) == 2 * len(runs) // int(mesh[mesh.index("pp=") + 3])


@pytest.mark.parametrize("frozen", [(0,), (1,), (0, 1)], ids=str)
def test_eager_stages_whose_parameters_are_all_frozen(frozen):
    """They stay as they are; the others get the update that they get on one rank where the same is frozen."""
    def made():
        model = filled(FIVE, parameters(FIVE))
        for name, p in model.named_parameters():
            p.stop_gradient = stage_of(name, FIVE.layers, 3) in frozen
        return model
    one, = on_mesh("pp=1", lambda m: pipeline_run(FIVE, m, "eager", STEPS[:2], 3, model=made()), FLOAT64)
    for run in on_mesh("pp=3", lambda m: pipeline_run(FIVE, m, "eager", STEPS[:2], 3, model=made()), FLOAT64):
        np.testing.assert_allclose(run.losses, one.losses, rtol=1e-10)
        close(run.parameters, {name: one.parameters[name] for name in run.parameters}, 1e-10)
