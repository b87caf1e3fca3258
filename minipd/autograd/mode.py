"""Switching the tape on and off: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from minipd.framework.context import using
from minipd.framework.rank import current

__all__ = ["enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


class set_grad_enabled:
    """Context manager and decorator: record operators inside, or not.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(1.0, stop_gradient=False)
    >>> with set_grad_enabled(False):
    ...     y = x * 2.0
    >>> y.stop_gradient
    True
    """

    def __init__(self, mode: bool):
        self.mode = mode
        self.stack: list[using] = []

    def __enter__(self) -> None:
        layers = using(grad=self.mode)
        layers.__enter__()
        self.stack.append(layers)

    def __exit__(self, *exc: object) -> None:
        self.stack.pop().__exit__(*exc)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with set_grad_enabled(self.mode):
                return function(*args, **kwargs)
        return wrapped


def _mode(mode: bool, function: Callable | None) -> Any:
    switch = set_grad_enabled(mode)
    return switch if function is None else switch(function)


def no_grad(func: Callable | None = None) -> Any:
    """Paddle's `no_grad`: `with no_grad(): ...`, `@no_grad()` or `@no_grad`: nothing inside is recorded."""
    return _mode(False, func)


def enable_grad(func: Callable | None = None) -> Any:
    """Paddle's `enable_grad`: record again, inside a `no_grad`."""
    return _mode(True, func)


def is_grad_enabled() -> bool:
    """Whether operators are recorded now, in this rank."""
    return current().grad_enabled
