"""What broadcasts needs no expansion: an operand of an element-wise operator that is expanded to the shape of another.

    >>> from minipd.ops.math import where
    >>> from minipd.passes.show import before_after, show
    >>> def hidden(mask, x):
    ...     seen = mask.cast("float32").expand([2, 3]).cast("bool")
    ...     return where(seen, x, x.sum().expand([2, 3]))
    >>> show(before_after("remove_redundant_expand_pass", hidden, "bool[3]", (2, 3)))
    before
      a = cast(mask, dtype=float32)
      b = expand(a, shape=(2, 3))
      c = cast(b, dtype=bool)
      d = sum(x, axis=(0, 1))
      e = expand(d, shape=(2, 3))
      f = where(c, x, e)
      return f
    after
      a = sum(x, axis=(0, 1))
      b = where(mask, x, a)
      return b

So programs come that Paddle has saved: its `where` does not broadcast.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.passes.base import PatternRewritePass
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.table import register_pass

__all__: list[str] = []

NAME = "remove_redundant_expand_pass"


@register_pass(NAME)
class RemoveRedundantExpand(PatternRewritePass):
    """Remove expansions that an element-wise operator does by itself."""

    exact = True


@drr(NAME, keep=True)
class BoolAsNumbers:
    """A bool tensor is no other for having been numbers, expanded or not."""

    def source(x, *, number, truth, shape):
        return ops.cast(ops.expand(ops.cast(x, dtype=number), shape=shape), dtype=truth)

    def constraint(x, truth):
        return x.dtype == truth == dtypes.bool.np

    def result(x, shape):
        return ops.expand(x, shape=shape)


@drr(NAME, keep=True)
class ExpandedCondition:
    """Beside values of the whole shape."""

    def source(c, x, y, *, shape):
        return ops.where(ops.expand(c, shape=shape), x, y)

    def constraint(x, y, shape):
        return _whole(shape, x, y)

    def result(c, x, y):
        return ops.where(c, x, y)


@drr(NAME, keep=True)
class ExpandedChoice:
    """The second choice beside a first of the whole shape."""

    def source(c, x, y, *, shape):
        return ops.where(c, x, ops.expand(y, shape=shape))

    def constraint(x, shape):
        return _whole(shape, x)

    def result(c, x, y):
        return ops.where(c, x, y)


def expanded(operator: str, first: bool) -> type:
    """x operator expand(y), or expand(y) operator x.  (Of 0.0 and -0.0, maximum gives the first: the order stays.)"""
    def of(x, y):
        return getattr(ops, operator)(*((y, x) if first else (x, y)))

    class Expanded:
        def source(x, y, *, shape):
            return of(x, ops.expand(y, shape=shape))

        def constraint(x, shape):
            return _whole(shape, x)

        def result(x, y):
            return of(x, y)
    Expanded.__name__ += ("First" if first else "") + operator.title()
    return Expanded


for _operator in ("add", "multiply", "subtract", "divide", "maximum", "minimum"):
    for _first in (False, True):
        drr(NAME, keep=True, commutative=False)(expanded(_operator, _first))


def _whole(shape: tuple, *values: Any) -> bool:
    """Whether one of the values has this shape already."""
    return any(tuple(v.shape) == tuple(shape) for v in values)
