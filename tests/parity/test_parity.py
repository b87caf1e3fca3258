"""Parity as a product: every mesh, eager, static and compiled, equals plain numpy in loss, every gradient, and all
parameters after five AdamW steps; replicated parameters stay equal to the bit; communication is counted, not only
values.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from minipd.models.config import ModelConfig
from tests.dist.ranks import on_mesh
from tests.models.llamas import SMALL, TIED
from tests.parity.runs import Run, mesh_run, numpy_run

FLOAT64 = np.dtype("float64")
CONFIGS = {"grouped": SMALL, "tied": TIED}
MESHES = ["dp=1,tp=1", "dp=2,tp=1", "dp=1,tp=2", "dp=2,tp=2"]
WAYS = ["eager", "static", "cinn"]


@pytest.fixture(scope="module")
def reference():
    return {name: numpy_run(c) for name, c in CONFIGS.items()}


def close(got: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> None:
    """To `tolerance` of each tensor's largest value."""
    assert got.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=0, atol=tolerance * np.abs(expected[name]).max(),
                                   err_msg=name)


def hand_count(config: ModelConfig, dp: int, tp: int, n_micro: int) -> dict[str, int]:
    """All-reduces of one step on one rank, by Megatron's and data parallelism's arithmetic.

    tp, per micro-batch: the embedding; per layer two forward (after attention and MLP), two backward (their inputs);
    the loss's maximum, sum and label; the input of the output layer.  dp: one per parameter, after accumulation.
    Clipping: one per mesh axis over which a sum of squares is partial: only tp's, dp's gradients are whole by then.
    """
    n_parameters = 9 * config.layers + 2 + (not config.tie_embeddings)
    n = (1 + 4 * config.layers + 3 + 1) * n_micro * (tp > 1) + n_parameters * (dp > 1) + (tp > 1)
    return {"all_reduce": n} if n else {}


def cases():
    """The product of models, meshes, ways and numbers of micro-batches.  Each mesh is computed each way in one case
    that is not long, and of these twelve any two choices meet in some case."""
    for (m, mesh), (w, way) in itertools.product(enumerate(MESHES), enumerate(WAYS)):
        usual = list(CONFIGS)[(m // 2 + w) % 2], 1 + (m + w) % 2
        for name, n_micro in itertools.product(CONFIGS, (1, 2)):
            marks = [] if (name, n_micro) == usual else [pytest.mark.long]
            yield pytest.param(name, mesh, way, n_micro, marks=marks)


@pytest.mark.parametrize(("name", "mesh", "way", "n_micro"), cases())
def test_every_mesh_equals_numpy(reference, name, mesh, way, n_micro):
    runs: list[Run] = on_mesh(mesh, lambda m: mesh_run(CONFIGS[name], m, way, n_micro), FLOAT64)
    expected = reference[name]
    dp, tp = (int(part.partition("=")[2]) for part in mesh.split(","))
    for run in runs:
        np.testing.assert_allclose(run.losses, expected.losses, rtol=1e-10)
        close(run.gradients, expected.gradients, 1e-10)
        close(run.parameters, expected.parameters, 1e-10)
        assert run.collectives == hand_count(CONFIGS[name], dp, tp, n_micro)
        assert run.replicated == runs[0].replicated


@pytest.mark.parametrize("mesh", ["dp=3,tp=1", "dp=1,tp=4"])
@pytest.mark.parametrize("way", WAYS)
def test_uneven_meshes_equal_numpy(reference, mesh, way):
    """Four sequences over three ranks (2, 2, 0), 29 tokens of vocabulary and 24 inner units over four."""
    for run in on_mesh(mesh, lambda m: mesh_run(TIED, m, way, 1), FLOAT64):
        np.testing.assert_allclose(run.losses, reference["tied"].losses, rtol=1e-10)
        close(run.gradients, reference["tied"].gradients, 1e-10)
        close(run.parameters, reference["tied"].parameters, 1e-10)
