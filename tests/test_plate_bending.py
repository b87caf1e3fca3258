"""examples/plate_bending.py: the network finds Navier's solution."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle

spec = importlib.util.spec_from_file_location(
    "plate_bending", Path(__file__).resolve().parent.parent / "examples" / "plate_bending.py")
plate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plate)


@pytest.fixture(autouse=True)
def float64():
    paddle.set_default_dtype("float64")
    yield
    paddle.set_default_dtype("float32")


def test_the_equation_holds_for_the_solution():
    """Fourth derivatives of w = sin(pi x) sin(pi y): the bilaplacian is 4 pi^4 w."""
    x, y = plate.coordinates(plate.points(3)[0])
    w = plate.load(x, y)
    w_xx, w_yy = plate.second_derivatives(w, x, y)
    v_xx, v_yy = plate.second_derivatives(w_xx + w_yy, x, y)
    np.testing.assert_allclose((v_xx + v_yy).numpy(), 4 * np.pi**4 * w.numpy(), rtol=1e-12)


def test_a_small_network_comes_near():
    assert plate.solve(steps=60, width=10, n=5, report=0) < 0.1


@pytest.mark.long
def test_within_one_percent():
    assert plate.solve(steps=400, report=0) < 0.01
