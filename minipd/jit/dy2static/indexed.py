"""What only the program can count: `range` of tensors, tensors of symbolic length, and `enumerate` and `zip` of these.

Each says how many items it has, a tensor, and gives the i-th for a tensor i.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minipd.framework.dim import DimExpr
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.jit.dy2static.logic import traced
from minipd.ops.cast import cast
from minipd.ops.creation import full
from minipd.ops.math import minimum

__all__: list[str] = []


class Indexed:
    """length: a tensor int64[], how many items; less than zero counts as none.  at: item i of it.  what: for errors."""

    def __init__(self, length: Tensor, at: Callable[[Tensor], Any], what: str):
        self.length, self.at, self.what = length, at, what

    def __iter__(self) -> Iterator:
        raise TypeError(f"{self.what}: expected a loop whose number of iterations is known while tracing, got one that "
                        "only the program knows; write it as a `for` statement, which becomes a loop of the program, "
                        "or fix the length")

    def __len__(self) -> int:
        raise TypeError(f"len() of {self.what}: expected a length that is known while tracing; use paddle.shape(x)[0]")


def indexed(x: Any) -> Indexed | None:
    """A value as something that the program counts; None if Python can go through it."""
    if isinstance(x, Indexed):
        return x
    if traced(x) and x.payload.shape and isinstance(x.payload.shape[0], DimExpr):
        return Indexed(as_tensor(x.payload.shape[0]), lambda i: x[i], f"a tensor of length {x.payload.shape[0]}")
    return None


def as_tensor(size: Any) -> Tensor:
    """A size that the program knows."""
    return Tensor(current().ground.build.full((), size, np.dtype(np.int64)))


def is_size(x: Any) -> bool:
    """Whether a number is known to the program only."""
    return traced(x) or isinstance(x, DimExpr)


def make_range(*args: Any) -> Any:
    """`range(...)`"""
    if not any(map(is_size, args)) or len(args) > 3:
        return range(*args)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    start, stop, step = (_number(x) for x in (start, stop, step))
    if isinstance(step, int) and step == 0:
        raise ValueError("range() arg 3 must not be zero")
    if isinstance(step, int) and step > 0:
        count = _quotient(_plus(_minus(stop, start), step - 1), step)
    elif isinstance(step, int):
        count = _quotient(_plus(_minus(start, stop), -step - 1), -step)
    else:
        count = -((start - stop) // step)
    if not isinstance(count, Tensor):           # `range(1, 5, n)` and the like have tensors in it
        count = full([], count, "int64")
    return Indexed(cast(count, "int64"), lambda i: _plus(i if _is(step, 1) else i * step, start), "a range of tensors")


def _is(x: Any, number: int) -> bool:
    """Whether x is this Python number: then the program need not compute with it."""
    return isinstance(x, int) and x == number


def _plus(a: Any, b: Any) -> Any:
    return a if _is(b, 0) else a + b


def _minus(a: Any, b: Any) -> Any:
    return a if _is(b, 0) else a - b


def _quotient(a: Any, b: int) -> Any:
    return a if _is(b, 1) else a // b


def _number(x: Any) -> Any:
    if isinstance(x, DimExpr):
        return as_tensor(x)
    if not traced(x):
        return x.__index__()
    if x.dtype.name not in ("int64", "int32", "int16", "int8", "uint8"):
        raise TypeError(f"range: expected integers, got a tensor of {x.dtype.name}; cast it")
    x = cast(x, "int64")
    return x if x.shape == [] else x.reshape([])


def make_enumerate(iterable: Any, start: Any = 0) -> Any:
    items = indexed(iterable)
    if items is None:
        return enumerate(iterable, start)
    return Indexed(items.length, lambda i: (i + start, items.at(i)), f"enumerate of {items.what}")


def make_zip(*iterables: Any, strict: bool = False) -> Any:
    """`zip(...)`; beside what the program counts, everything else is taken by index too, so it has to be a tensor."""
    found = [indexed(x) for x in iterables]
    if all(items is None for items in found):
        return zip(*iterables, strict=strict)
    counted = next(items.what for items in found if items is not None)
    for i, (x, items) in enumerate(zip(iterables, found, strict=True)):
        if items is None and not isinstance(x, (Tensor, range)):
            raise TypeError(f"zip: expected tensors and ranges beside {counted}, got "
                            f"{type(x).__name__}; stack it into a tensor")
        if items is None:
            found[i] = _fixed(x)
    every: list[Any] = found
    length = every[0].length
    for items in every[1:]:
        length = minimum(length, items.length)
    return Indexed(length, lambda i: tuple(items.at(i) for items in every), f"zip of {every[0].what}")


def _fixed(x: Any) -> Indexed:
    if isinstance(x, range):
        return Indexed(full([], len(x), "int64"), lambda i: i * x.step + x.start, "a range")
    return Indexed(full([], len(x), "int64"), lambda i: x[i], "a tensor")
