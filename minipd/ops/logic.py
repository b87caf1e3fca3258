"""Comparisons and logic: bool results, no gradients."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op, ufunc
from minipd.ops.promotion import binary, unary
from minipd.ops.shapes import elementwise

__all__ = ["equal", "greater_equal", "greater_than", "isfinite", "less_equal", "less_than", "logical_and",
           "logical_not", "logical_or", "not_equal"]


def _bool(what: str, *xs: Any) -> Meta:
    return Meta(elementwise(what, *xs).shape, dtypes.bool.np)


@op("equal", Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.EXACT, Trait.DISCRETE)
class Equal:
    """x == y, broadcast; NaN equals nothing."""

    def infer_meta(x, y):
        return _bool("equal", x, y)

    kernel = ufunc("equal")


@op("not_equal", Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.EXACT, Trait.DISCRETE)
class NotEqual:
    """x != y, broadcast."""

    def infer_meta(x, y):
        return _bool("not_equal", x, y)

    kernel = ufunc("not_equal")


@op("less_than", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class LessThan:
    """x < y, broadcast."""

    def infer_meta(x, y):
        return _bool("less_than", x, y)

    kernel = ufunc("less")


@op("less_equal", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class LessEqual:
    """x <= y, broadcast."""

    def infer_meta(x, y):
        return _bool("less_equal", x, y)

    kernel = ufunc("less_equal")


@op("greater_than", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class GreaterThan:
    """x > y, broadcast."""

    def infer_meta(x, y):
        return _bool("greater_than", x, y)

    kernel = ufunc("greater")


@op("greater_equal", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class GreaterEqual:
    """x >= y, broadcast."""

    def infer_meta(x, y):
        return _bool("greater_equal", x, y)

    kernel = ufunc("greater_equal")


@op("logical_and", Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.EXACT, Trait.DISCRETE)
class LogicalAnd:
    """x and y, broadcast; any number but 0 counts as true."""

    def infer_meta(x, y):
        return _bool("logical_and", x, y)

    kernel = ufunc("logical_and")


@op("logical_or", Trait.ELEMENTWISE, Trait.COMMUTATIVE, Trait.EXACT, Trait.DISCRETE)
class LogicalOr:
    """x or y, broadcast; any number but 0 counts as true."""

    def infer_meta(x, y):
        return _bool("logical_or", x, y)

    kernel = ufunc("logical_or")


@op("logical_not", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class LogicalNot:
    """not x."""

    def infer_meta(x):
        return Meta(x.shape, dtypes.bool.np)

    kernel = ufunc("logical_not")


@op("isfinite", Trait.ELEMENTWISE, Trait.EXACT, Trait.DISCRETE)
class IsFinite:
    """True where x is neither infinite nor NaN."""

    def infer_meta(x):
        return Meta(x.shape, dtypes.bool.np)

    kernel = ufunc("isfinite")


equal, not_equal, less_than, less_equal = binary(Equal), binary(NotEqual), binary(LessThan), binary(LessEqual)
greater_than, greater_equal = binary(GreaterThan), binary(GreaterEqual)
logical_and, logical_or = binary(LogicalAnd), binary(LogicalOr)
logical_not, isfinite = unary(LogicalNot), unary(IsFinite)
