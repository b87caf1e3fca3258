"""The models of the benchmarks give the same behind the passes of inference, and these find nothing left to do."""

import sys
from pathlib import Path

import numpy as np
import pytest

from minipd.passes.compare import outcome
from minipd.passes.manager import PassManager
from minipd.passes.pipelines import add_passes, inference_passes
from minipd.passes.table import create_pass
from tests.passes.test_every_pass import NAMES, check

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    import passes_cases
finally:
    sys.path.pop(0)

#: those of `make test`: one of each kind
QUICK = ("MLP, self-gated", "MobileNetV2", "GPT-2", "GRU")


def params():
    for name in passes_cases.MODELS:
        yield pytest.param(name, marks=() if name.startswith(QUICK) else pytest.mark.long)


@pytest.mark.parametrize("name", list(params()))
def test_the_pipeline_keeps_what_a_model_computes(name):
    found = {}
    for way in ("none", "passes"):
        predictor = passes_cases.predictor_of(name, way)
        predictor.run()
        found[way] = [predictor.get_output_handle(out).copy_to_cpu() for out in predictor.get_output_names()]
    assert sum(run.changes for run in predictor.statistics) > 0
    for before, after in zip(found["none"], found["passes"], strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=2e-5 * np.abs(before).max())
    again = PassManager()
    add_passes(again, inference_passes(), predictor._optimised(None).scope)
    assert again.run(predictor.program) == 0, again.report()


@pytest.mark.long
@pytest.mark.parametrize("name", list(passes_cases.MODELS))
def test_every_pass_alone_keeps_what_a_model_computes(name):
    """And changes nothing when it is run again.  (Numbers of low precision are compared on smaller networks: here a
    rounding may send a token to another expert.)"""
    predictor = passes_cases.predictor_of(name, "none")
    predictor.run()
    feed = dict(zip(predictor.get_input_names(), passes_cases.arrays_of(name), strict=True))
    state = dict(predictor._optimised(None).scope)
    want = outcome(predictor.program, feed, state)
    changes = [check(each, predictor.program, None if create_pass(each).opt_level == 4 else want, feed, state)
               for each in NAMES]
    assert sum(changes) > 0
