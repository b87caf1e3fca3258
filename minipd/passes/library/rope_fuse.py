"""The two halves of a head turned by their angles, and put together again, become one operator.

    >>> from minipd.ops.joining import concat
    >>> from minipd.passes.show import before_after, show
    >>> def turned(x, cos, sin):
    ...     return x * cos + concat([-x[..., 4:], x[..., :4]], -1) * sin
    >>> show(before_after("fused_rotary_position_embedding_pass", turned, (2, 3, 8), (3, 8), (3, 8)))
    before
      a = multiply(x, cos)
      b = slice(x, axes=(2,), starts=(4,), ends=(8,))
      c = scale(b, scale=-1.0)
      d = slice(x, axes=(2,), starts=(0,), ends=(4,))
      e = concat(c, d, axis=2)
      f = multiply(e, sin)
      g = add(a, f)
      return g
    after
      a = fused_rotary_position_embedding(x, cos, sin)
      return a
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []


NAME = "fused_rotary_position_embedding_pass"


def broadcast(x: Any, cos: Any, sin: Any, size: Any) -> bool:
    """Whether cos and sin can be multiplied with x, or with so many places of its last dimension, and are no larger."""
    shape = (*x.shape[:-1], size)
    return x.dtype in dtypes.FLOATS and all(
        t.dtype == x.dtype and t.ndim <= x.ndim and all(
            s in (1, n) for s, n in zip(t.shape[::-1], shape[::-1], strict=False)) for t in (cos, sin))


def in_halves(x: Any, axes: tuple, zero: tuple, half: tuple, end: tuple, last: int) -> bool:
    """Whether x is sliced into the two halves of its last dimension, and put together along it."""
    d = x.shape[-1]
    return axes == (x.ndim - 1,) and last == x.ndim - 1 and zero == (0,) and end == (d,) and half[0] * 2 == d


@drr(NAME)
class RotaryPositionEmbedding:
    """[a cos - b sin, b cos + a sin] of the halves a, b of x's last dimension."""

    def source(x, cos, sin, *, axes, zero, half, end, last):
        a = ops.slice(x, axes=axes, starts=zero, ends=half)
        b = ops.slice(x, axes=axes, starts=half, ends=end)
        return ops.concat(a * cos - b * sin, b * cos + a * sin, axis=last)

    def constraint(x, cos, sin, axes, zero, half, end, last):
        return broadcast(x, cos, sin, half[0]) and in_halves(x, axes, zero, half, end, last)

    def result(x, cos, sin):
        return ops.fused_rotary_position_embedding(x, cos, sin)


# ------------------------------------------------------------------------------------------------ x cos + (-b, a) sin
def of_places(x: Any, cos: Any, sin: Any) -> bool:
    """Whether cos and sin have a number for each place of x's last dimension."""
    d = x.shape[-1]
    return broadcast(x, cos, sin, d) and all(t.ndim > 0 and t.shape[-1] == d for t in (cos, sin))


def of_halves(x: Any, cos: Any, sin: Any, axes: tuple, zero: tuple, half: tuple, end: tuple, last: int) -> bool:
    return of_places(x, cos, sin) and in_halves(x, axes, zero, half, end, last)


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    return ops.fused_rotary_position_embedding(x, cos, sin)


@drr(NAME)
class RotateHalf:
    """x cos + (-b, a) sin for the halves a, b of x: as Llama's published code has it."""

    def source(x, cos, sin, *, axes, zero, half, end, last):
        a = ops.slice(x, axes=axes, starts=zero, ends=half)
        b = ops.slice(x, axes=axes, starts=half, ends=end)
        return x * cos + ops.concat(b * -1.0, a, axis=last) * sin

    constraint, result = of_halves, rotated


@drr(NAME)
class RotateHalfScaled:
    """The same, the sign by `scale`."""

    def source(x, cos, sin, *, axes, zero, half, end, last):
        a = ops.slice(x, axes=axes, starts=zero, ends=half)
        b = ops.slice(x, axes=axes, starts=half, ends=end)
        return x * cos + ops.concat(-b, a, axis=last) * sin

    constraint, result = of_halves, rotated


def of_two(x: Any, cos: Any, sin: Any, axis: int, sections: tuple, last: int) -> bool:
    return of_places(x, cos, sin) and axis == last == x.ndim - 1 and sections == (x.shape[-1] // 2,) * 2


@drr(NAME)
class RotateHalfSplit:
    """The halves by `chunk` or `split`."""

    def source(x, cos, sin, *, axis, sections, last):
        a, b = ops.split(x, axis=axis, sections=sections, results=2)
        return x * cos + ops.concat(-b, a, axis=last) * sin

    constraint, result = of_two, rotated


@drr(NAME)
class RotateHalfSplitTimes:
    """The same, the sign by a product."""

    def source(x, cos, sin, *, axis, sections, last):
        a, b = ops.split(x, axis=axis, sections=sections, results=2)
        return x * cos + ops.concat(b * -1.0, a, axis=last) * sin

    constraint, result = of_two, rotated
