"""Switching the tape on and off: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from minipd.framework.rank import current

__all__ = ["enable_grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]


class _Switch:
    """Records operators inside, or does not: a context manager (also inside itself), and a decorator."""

    def __init__(self, mode: bool):
        self.mode = bool(mode)
        self.before: list[tuple[Any, bool]] = []        # per entry: the context, and what to restore in it

    def __enter__(self) -> None:
        context = current()
        self.before.append((context, context.grad_enabled))
        context.set_grad_enabled(self.mode)

    def __exit__(self, *exc: object) -> None:
        context, mode = self.before.pop()
        context.set_grad_enabled(mode)

    def __call__(self, function: Callable) -> Callable:
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with _Switch(self.mode):
                return function(*args, **kwargs)
        return switched

    def _generator(self, function: Callable) -> Callable:
        """The body runs when the generator is resumed, so the mode is switched there, and back at every `yield`."""
        @functools.wraps(function)
        def switched(*args: Any, **kwargs: Any) -> Iterator:
            generator = function(*args, **kwargs)
            resume = functools.partial(next, generator)
            while True:
                try:
                    with _Switch(self.mode):
                        value = resume()
                except StopIteration as end:
                    return end.value
                try:
                    sent = yield value
                except GeneratorExit:
                    with _Switch(self.mode):
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
                else:
                    resume = functools.partial(generator.send, sent)
        return switched


class set_grad_enabled(_Switch):
    """Record operators from now on, or not; as a context manager or decorator, inside only (as in Paddle).

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(1.0, stop_gradient=False)
    >>> with set_grad_enabled(False):
    ...     y = x * 2.0
    >>> y.stop_gradient
    True
    """

    def __init__(self, mode: bool):
        super().__init__(mode)
        self.called_in: tuple[Any, bool] | None = (current(), current().grad_enabled)
        current().set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        super().__enter__()
        if self.called_in is not None:                  # what was before the call, not before `with`
            self.before[-1], self.called_in = self.called_in, None

    def __call__(self, function: Callable) -> Callable:
        if self.called_in is not None:
            context, mode = self.called_in
            context.set_grad_enabled(mode)
            self.called_in = None
        return super().__call__(function)


def _mode(mode: bool, function: Callable | None) -> Any:
    return _Switch(mode) if function is None else _Switch(mode)(function)


def no_grad(func: Callable | None = None) -> Any:
    """Paddle's `no_grad`: `with no_grad(): ...`, `@no_grad()` or `@no_grad`: nothing inside is recorded."""
    return _mode(False, func)


def enable_grad(func: Callable | None = None) -> Any:
    """Paddle's `enable_grad`: record again, inside a `no_grad`."""
    return _mode(True, func)


def is_grad_enabled() -> bool:
    """Whether operators are recorded now, in this rank."""
    return current().grad_enabled
