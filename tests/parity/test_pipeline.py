"""Parity of pipelines: any mix of dp, tp and pp equals plain numpy in loss, every gradient by name, and all parameters
after some AdamW steps (hard cases E1, E4, E11, E15).
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.dist.ranks import on_mesh
from tests.parity.pipeline_runs import FIVE, Run, data, pipeline_run
from tests.parity.runs import numpy_run
from tests.parity.test_parity import FLOAT64, close


@pytest.fixture(scope="module")
def reference():
    return numpy_run(FIVE, data(FIVE))


def united(runs: list[Run], what: str) -> dict[str, np.ndarray]:
    """What the stages know together; ranks that know the same parameter agree on it."""
    found: dict[str, np.ndarray] = {}
    for run in runs:
        for name, value in getattr(run, what).items():
            np.testing.assert_array_equal(value, found.setdefault(name, value), err_msg=name)
    return found


def compare(runs: list[Run], expected) -> None:
    for run in runs:
        np.testing.assert_allclose(run.losses, expected.losses, rtol=1e-10)
    close(united(runs, "gradients"), expected.gradients, 1e-10)
    close(united(runs, "parameters"), expected.parameters, 1e-10)


@pytest.mark.parametrize(("mesh", "n_micro", "schedule"), [
    ("pp=2", 3, "1F1B"), ("pp=2", 3, "FThenB"), ("pp=2", 1, "1F1B"), ("pp=2,tp=2", 3, "1F1B"),
    ("tp=2,pp=2", 2, "FThenB"), ("dp=2,pp=2", 3, "1F1B"), ("dp=2,tp=2,pp=2", 3, "1F1B"),
    ("pp=2,dp=2,tp=2", 3, "FThenB"),
])
def test_every_mesh_equals_numpy(reference, mesh, n_micro, schedule):
    """Five layers are three and two on two stages."""
    compare(on_mesh(mesh, lambda m: pipeline_run(FIVE, m, n_micro, schedule), FLOAT64), reference)
