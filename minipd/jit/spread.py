"""Functions compiled for tensors that are spread over ranks.

What their programs are traced by, how they become programs of one rank, and how a rank's state is written, is known to
the floor of distribution, above this one: it registers what it supplies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Spread", "register_spread"]


class Spread(NamedTuple):
    """tracer(places by the names of inputs): the trace.  runnable: what a `Runnable` is for other programs.
    scope(tensors by name): the program's state."""

    tracer: Callable
    runnable: Callable
    scope: Callable


SUPPLIED: list[Spread] = []


def register_spread(spread: Spread) -> None:
    """Let functions be compiled for distributed tensors."""
    SUPPLIED[:] = [spread]


def supplied() -> Spread:
    """What is registered: wherever there are distributed tensors, something is."""
    spread, = SUPPLIED
    return spread


def place_of(payload: Any) -> Any:
    """Where a tensor is, as a program depends on it; None for one that is on no mesh."""
    return None if type(payload) is np.ndarray else getattr(payload, "placed", None)
