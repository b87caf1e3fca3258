"""The models that `passes.py` measures, as contenders: each saved as its user would save it, and asked by a predictor.

    cases("passes")     through the pipeline of `paddle.inference`
    cases("none")       without a pass
    cases("cinn")       through the pipeline, and compiled as a whole

FRAMEWORK=paddle in the environment lets the models be the real Paddle's.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import passes_language
import passes_other
import passes_vision
from passes_vision import paddle

#: name -> (what makes the layer, its inputs)
MODELS = {**passes_other.MODELS, **passes_vision.MODELS, **passes_language.MODELS}


def arrays_of(name: str) -> list[np.ndarray]:
    """Inputs of a model: normal numbers, or integers below what it says."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return [rng.standard_normal(shape).astype(dtype) if below is None else rng.integers(0, below, shape).astype(dtype)
            for shape, dtype, below in MODELS[name][1]]


def layer_of(name: str) -> Any:
    """The model with random weights, running statistics of normalisations included."""
    paddle.seed(7)
    layer = MODELS[name][0]()
    rng = np.random.default_rng(11)
    for key, buffer in layer.named_buffers():
        if key.endswith("_variance"):
            buffer.set_value(rng.uniform(0.5, 2.0, buffer.shape).astype("float32"))
        elif key.endswith("_mean"):
            buffer.set_value(rng.standard_normal(buffer.shape).astype("float32") * 0.1)
    layer.eval()
    return layer


def saved(name: str, folder: str) -> tuple[str, str]:
    """Save a model; returns the names of its files."""
    inputs = MODELS[name][1]
    specs = [paddle.static.InputSpec(list(shape), dtype, f"x{i}") for i, (shape, dtype, _) in enumerate(inputs)]
    prefix = f"{folder}/{zlib.crc32(name.encode()):08x}"
    paddle.jit.save(layer_of(name), prefix, input_spec=specs)
    return f"{prefix}.json", f"{prefix}.pdiparams"


def predictor_of(name: str, way: str) -> Any:
    """A predictor of a model, with its inputs in place."""
    with tempfile.TemporaryDirectory() as folder:
        config = paddle.inference.Config(*saved(name, folder))
        config.switch_ir_optim(way != "none")
        if way == "cinn":
            config.enable_cinn()
        predictor = paddle.inference.create_predictor(config)
    for handle, array in zip(predictor.get_input_names(), arrays_of(name), strict=True):
        predictor.get_input_handle(handle).copy_from_cpu(array)
    return predictor


def cases(argument: str) -> dict[str, Callable]:
    """argument: the way; with one model alive at a time."""
    alive: dict[str, Any] = {}

    def case(name: str) -> Callable:
        def run() -> None:
            if name not in alive:
                alive.clear()
                alive[name] = predictor_of(name, argument)
            alive[name].run()
        return run
    return {name: case(name) for name in MODELS}
