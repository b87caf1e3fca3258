"""`dist.to_static`: programs of many ranks compute what one rank does, and say what eager ranks say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.dist.static_models import SETTINGS, Run, adamw, alone, sgd


def size_of(name):
    return {"uneven": {"hidden": 7}, "empty": {"hidden": 3}, "pp x dp x tp": {"bias": False}}.get(name, {})


@pytest.mark.parametrize("name", SETTINGS)
def test_equal_to_one_rank_and_step_for_step_to_eager(name):
    """Losses, predictions and parameters are those of one rank; the collectives and messages those of eager ranks, in
    their order."""
    losses, predicted, state = alone(**size_of(name))
    static = Run(SETTINGS[name](), "static")
    np.testing.assert_allclose(static.losses, losses, rtol=1e-10)
    np.testing.assert_allclose(static.predicted, predicted, rtol=1e-10)
    for key, value in state.items():
        np.testing.assert_allclose(static.state[key], value, rtol=1e-9, err_msg=key)
    assert static.log == Run(SETTINGS[name](), "eager").log
