"""What tensor parallel layers send is what theory says, to the byte: counted by `benchmarks/dist.py`, checked here."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "dist.py"


@pytest.fixture(scope="module")
def counting():
    spec = importlib.util.spec_from_file_location("benchmark_of_dist", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("ways", [2, 4])
def test_parallel_layers_send_what_theory_says(counting, ways):
    found = list(counting.parallel_layers(ways))
    assert len(found) == 7 * ways
    for what, sent, theory in found:
        assert tuple(sent) == tuple(theory), what


def test_a_reshard_on_one_axis_sends_the_least_that_suffices(counting):
    kinds = [counting.R, counting.S0, counting.S1, counting.P]
    pairs = [([a], [b]) for a in kinds for b in kinds]
    for found in counting.simulate("x=4", lambda mesh: counting.resharded(mesh, pairs, (8, 12))):
        assert found == [counting.on_one_axis(a, b, 8 * 12 * 8, 4) for (a,), (b,) in pairs]
