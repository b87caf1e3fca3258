"""Comparisons and logic: bool results, no gradients."""

from __future__ import annotations

from minipd.framework.row import Trait, op, ufunc
from minipd.ops.families import Comparison, Predicate
from minipd.ops.promotion import binary, unary

__all__ = ["eq", "equal", "ge", "greater", "greater_equal", "greater_than", "gt", "isfinite", "isinf", "isnan", "le",
           "less", "less_equal", "less_than", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "ne",
           "not_equal"]


@op("equal", Trait.COMMUTATIVE)
class Equal(Comparison):
    """x == y, broadcast; NaN equals nothing."""

    kernel = ufunc("equal")


@op("not_equal", Trait.COMMUTATIVE)
class NotEqual(Comparison):
    """x != y, broadcast."""

    kernel = ufunc("not_equal")


@op("less_than")
class LessThan(Comparison):
    """x < y, broadcast."""

    kernel = ufunc("less")


@op("less_equal")
class LessEqual(Comparison):
    """x <= y, broadcast."""

    kernel = ufunc("less_equal")


@op("greater_than")
class GreaterThan(Comparison):
    """x > y, broadcast."""

    kernel = ufunc("greater")


@op("greater_equal")
class GreaterEqual(Comparison):
    """x >= y, broadcast."""

    kernel = ufunc("greater_equal")


@op("logical_and", Trait.COMMUTATIVE)
class LogicalAnd(Comparison):
    """x and y, broadcast; any number but 0 counts as true."""

    kernel = ufunc("logical_and")


@op("logical_or", Trait.COMMUTATIVE)
class LogicalOr(Comparison):
    """x or y, broadcast; any number but 0 counts as true."""

    kernel = ufunc("logical_or")


@op("logical_xor", Trait.COMMUTATIVE)
class LogicalXor(Comparison):
    """Either x or y, broadcast; any number but 0 counts as true."""

    kernel = ufunc("logical_xor")


@op("logical_not")
class LogicalNot(Predicate):
    """not x."""

    kernel = ufunc("logical_not")


@op("isfinite")
class IsFinite(Predicate):
    """True where x is neither infinite nor NaN."""

    kernel = ufunc("isfinite")


@op("isinf")
class IsInf(Predicate):
    """True where x is infinite."""

    kernel = ufunc("isinf")


@op("isnan")
class IsNan(Predicate):
    """True where x is NaN."""

    kernel = ufunc("isnan")


equal, not_equal, less_than, less_equal = binary(Equal), binary(NotEqual), binary(LessThan), binary(LessEqual)
greater_than, greater_equal = binary(GreaterThan), binary(GreaterEqual)
logical_and, logical_or, logical_xor = binary(LogicalAnd), binary(LogicalOr), binary(LogicalXor)
logical_not, isfinite, isinf, isnan = unary(LogicalNot), unary(IsFinite), unary(IsInf), unary(IsNan)
eq, ne, lt, le, gt, ge = equal, not_equal, less_than, less_equal, greater_than, greater_equal
less, greater = less_than, greater_than
