"""Whether what is installed works."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np

from minipd.autograd.engine import backward
from minipd.nn.common import Linear
from minipd.ops.creation import ones

__all__ = ["run_check", "try_import"]


def run_check() -> None:
    """Train a layer for a step, and say so if it works.

    >>> run_check()
    minipd works on this CPU.

    Raises: RuntimeError for a gradient that is wrong.
    """
    layer = Linear(2, 3)
    backward(layer(ones([4, 2])).sum())
    if not (layer.weight.grad.numpy() == np.full((2, 3), 4.0)).all():
        raise RuntimeError(f"run_check: expected a gradient of fours, got {layer.weight.grad}")
    print("minipd works on this CPU.")


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """The module of that name.   ImportError, with `err_msg`, where it is not installed.

    >>> try_import("math").sqrt(4)
    2.0
    """
    try:
        return importlib.import_module(module_name)
    except ImportError as e:
        raise ImportError(err_msg or f"{module_name}: expected it to be installed; install it with pip") from e
