"""Scalars with operators: formulas are written as on paper, and come out as expressions of the loop IR.

A Python number takes the dtype of the Scalar beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.cinn.ir import build
from minipd.cinn.ir.ast import BOOL, Call, Expr

__all__ = ["Scalar", "absolute", "call", "cast", "isfinite", "maximum", "minimum", "truth", "unary", "where"]


class Scalar:
    """An expression that + - * / ** and comparisons work on.

    >>> from minipd.cinn.ir.ast import Var
    >>> from minipd.cinn.ir.printer import text
    >>> x = Scalar(Var("x", np.dtype("float32")))
    >>> text((1 / (1 + unary("exp", -x))).expr)
    '1.0f / (1.0f + exp(-x))'
    """

    __slots__ = ("expr",)

    def __init__(self, expr: Expr):
        self.expr = expr

    @property
    def dtype(self) -> np.dtype:
        return self.expr.dtype

    def _lift(self, other: Any) -> Scalar:
        return other if isinstance(other, Scalar) else Scalar(build.const(other, self.dtype))

    def _binary(self, op: str, other: Any) -> Scalar:
        return Scalar(build.binary(op, self.expr, self._lift(other).expr))

    def __add__(self, other: Any) -> Scalar:
        return self._binary("add", other)

    def __sub__(self, other: Any) -> Scalar:
        return self._binary("sub", other)

    def __mul__(self, other: Any) -> Scalar:
        return self._binary("mul", other)

    def __truediv__(self, other: Any) -> Scalar:
        return self._binary("div", other)

    def __pow__(self, other: Any) -> Scalar:
        return self._binary("pow", other)

    def __floordiv__(self, other: Any) -> Scalar:
        return self._binary("floordiv", other)

    def __mod__(self, other: Any) -> Scalar:
        return self._binary("mod", other)

    def __radd__(self, other: Any) -> Scalar:
        return self._lift(other) + self

    def __rsub__(self, other: Any) -> Scalar:
        return self._lift(other) - self

    def __rmul__(self, other: Any) -> Scalar:
        return self._lift(other) * self

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._lift(other) / self

    def __rpow__(self, other: Any) -> Scalar:
        return self._lift(other) ** self

    def __neg__(self) -> Scalar:
        return unary("neg", self)

    def __lt__(self, other: Any) -> Scalar:
        return self._binary("lt", other)

    def __le__(self, other: Any) -> Scalar:
        return self._binary("le", other)

    def __gt__(self, other: Any) -> Scalar:
        return self._binary("gt", other)

    def __ge__(self, other: Any) -> Scalar:
        return self._binary("ge", other)

    def equals(self, other: Any) -> Scalar:
        return self._binary("eq", other)

    def differs(self, other: Any) -> Scalar:
        return self._binary("ne", other)

    def __and__(self, other: Any) -> Scalar:
        return self._binary("and", other)

    def __or__(self, other: Any) -> Scalar:
        return self._binary("or", other)


def unary(op: str, x: Scalar) -> Scalar:
    """An operator of the loop IR by its name."""
    return Scalar(build.unary(op, x.expr))


def call(name: str, *xs: Scalar) -> Scalar:
    """A function of the back end's library by its name."""
    return Scalar(Call(name, tuple(x.expr for x in xs), xs[0].dtype))


def absolute(x: Scalar) -> Scalar:
    return unary("abs", x)


def maximum(x: Scalar, y: Any) -> Scalar:
    return x._binary("max", y)


def minimum(x: Scalar, y: Any) -> Scalar:
    return x._binary("min", y)


def where(cond: Scalar, x: Any, y: Any) -> Scalar:
    """One of x and y may be a number."""
    x = x if isinstance(x, Scalar) else y._lift(x)
    return Scalar(build.select(cond.expr, x.expr, x._lift(y).expr))


def cast(x: Scalar, dtype: np.dtype) -> Scalar:
    return Scalar(build.cast(x.expr, dtype))


def truth(x: Scalar) -> Scalar:
    """Any number but 0 is true."""
    return x if x.dtype == BOOL else x.differs(0)


def isfinite(x: Scalar) -> Scalar:
    return unary("isfinite", x) if x.dtype.kind == "f" else Scalar(build.const(True, BOOL))
