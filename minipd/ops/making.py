"""What functions that make tensors have in common: the keyword-only parameters of Paddle's."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from minipd.framework.dim import DimExpr
from minipd.framework.meta import describe
from minipd.framework.place import check_device
from minipd.framework.tensor import Tensor
from minipd.framework.views import check_writable, rebind

__all__: list[str] = []


def into(out: Tensor | None, result: Tensor) -> Tensor:
    """What a function with the parameter `out` returns: its result, or `out` with the result written into it.

    Raises: TypeError if `out` is no Tensor, ValueError if it has another shape or dtype.
    """
    if out is None:
        return result
    if not isinstance(out, Tensor):
        raise TypeError(f"out: expected a Tensor, got {type(out).__name__}")
    if out.payload.shape != result.payload.shape or out.payload.dtype != result.payload.dtype:
        raise ValueError(f"out: expected a tensor like the result, {describe(result.payload)}, got "
                         f"{describe(out.payload)}")
    check_writable(out, "out")
    rebind(out, result, "out")
    return out


def asked_for(made: Tensor, what: str, device: Any, requires_grad: bool) -> Tensor:
    """A new tensor as its maker's parameters ask for it.  Raises: ValueError for a device that is not here."""
    check_device(what, device)
    if requires_grad:
        made.stop_gradient = False
    return made


#: what an argument may be that is one of several sizes
SIZES = (int, DimExpr, Tensor)


def spread(at: int) -> Any:
    """Decorator: the list of ints that is parameter number `at`, the last but for options, may also be given as so
    many arguments.

    >>> @spread(1)
    ... def shaped(x, shape, name=None):
    ...     return shape
    >>> shaped("x", 2, 3), shaped("x", [2, 3])
    ([2, 3], [2, 3])
    """
    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            if len(args) > at + 1 and all(type(a) in SIZES for a in args[at:]):
                args = (*args[:at], list(args[at:]))
            return function(*args, **named)
        return call
    return decorate


def makes(function: Any) -> Any:
    """The function with the parameters `out` (a tensor to write the result into), `device` (the CPU is the only one
    here), `requires_grad` (the opposite of stop_gradient) and `pin_memory` (without effect).

    >>> @makes
    ... def pi(dtype=None):
    ...     return Tensor(3.14)
    >>> pi(requires_grad=True).stop_gradient
    False
    """
    @functools.wraps(function)
    def make(*args: Any, out: Tensor | None = None, device: Any = None, requires_grad: bool = False,
             pin_memory: bool = False, **named: Any) -> Tensor:
        return asked_for(into(out, function(*args, **named)), function.__name__, device, requires_grad)

    own = inspect.signature(function)
    added = [p for p in inspect.signature(make, follow_wrapped=False).parameters.values() if p.kind is p.KEYWORD_ONLY]
    make.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]
    return make
