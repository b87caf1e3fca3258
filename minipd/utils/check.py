"""Whether what is installed works."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np

from minipd.autograd.engine import backward
from minipd.nn.common import Linear
from minipd.ops.creation import ones

__all__ = ["require_version", "run_check", "try_import"]


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


def require_version(min_version: str, max_version: str | None = None) -> None:
    """Accept a script that asks for a version of Paddle from min_version to max_version, which minipd follows (3.3.1).

    >>> require_version("2.0"), require_version("3.0.0", "3.4")
    (None, None)
    >>> require_version("9.0")
    Traceback (most recent call last):
    ...
    RuntimeError: require_version: expected a Paddle of at least 9.0; minipd follows Paddle 3.3.1

    Raises: ValueError for what is no version, RuntimeError where Paddle 3.3.1 is not among them.
    """
    least, most = (None if v is None else _numbers(v) for v in (min_version, max_version))
    if least is not None and _numbers(FOLLOWED) < least:
        raise RuntimeError(f"require_version: expected a Paddle of at least {min_version}; minipd follows Paddle "
                           f"{FOLLOWED}")
    if most is not None and _numbers(FOLLOWED)[:len(most)] > most:
        raise RuntimeError(f"require_version: expected a Paddle of at most {max_version}; minipd follows Paddle "
                           f"{FOLLOWED}")


#: the version of Paddle whose names and prints are minipd's
FOLLOWED = "3.3.1"


def _numbers(version: str) -> tuple[int, ...]:
    parts = str(version).split(".")
    if not 1 <= len(parts) <= 4 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"require_version: expected a version such as '3.0.0', got {version!r}")
    return tuple(map(int, parts))


def try_import(module_name: str, err_msg: str | None = None) -> ModuleType:
    """The module of that name.   ImportError, with `err_msg`, where it is not installed.

    >>> try_import("math").sqrt(4)
    2.0
    """
    try:
        return importlib.import_module(module_name)
    except ImportError as e:
        raise ImportError(err_msg or f"{module_name}: expected it to be installed; install it with pip") from e
