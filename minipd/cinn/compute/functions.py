"""Element-wise rows beyond arithmetic: rounding, logarithms, circular and hyperbolic functions, extremes, division.

Functions that the loop IR has no operator for are calls of the back end's library.
"""

from __future__ import annotations

import math
from typing import Any

from minipd.cinn.compute.scalar import Scalar, absolute, call, maximum, minimum, truth, unary, where
from minipd.cinn.compute.table import elementwise
from minipd.cinn.ir.ast import BOOL, Const
from minipd.cinn.ir.build import const

__all__: list[str] = []


def library(name: str) -> Any:
    """The formula that is one call."""
    return lambda *xs: call(name, *xs)


for _row in ("log1p", "expm1", "log2", "log10", "tan", "sinh", "cosh", "hypot", "logaddexp", "copysign"):
    elementwise(_row)(library(_row))
for _row in ("sin", "cos", "tan"):
    for _suffix in ("", "h"):
        elementwise(f"a{_row}{_suffix}")(library(f"arc{_row}{_suffix}"))
elementwise("atan2")(library("arctan2"))

elementwise("reciprocal")(lambda x: 1 / x)
elementwise("isnan")(lambda x: x.differs(x))
elementwise("isinf")(lambda x: absolute(x).equals(math.inf) if _is_float(x) else Scalar(const(False, BOOL)))
elementwise("logical_xor")(lambda x, y: truth(x).differs(truth(y)))


def _is_float(x: Scalar) -> bool:
    return x.dtype.kind == "f"


def _numbers(name: str, x: Scalar) -> None:
    if x.dtype == BOOL:
        raise TypeError(f"{name} of bools")


# ----------------------------------------------------------------------------------------------------- rounding
@elementwise("floor")
def floor(x: Scalar) -> Scalar:
    _numbers("floor", x)
    return unary("floor", x) if _is_float(x) else x


@elementwise("ceil")
def ceil(x: Scalar) -> Scalar:
    _numbers("ceil", x)
    return call("ceil", x) if _is_float(x) else x


@elementwise("trunc")
def trunc(x: Scalar) -> Scalar:
    _numbers("trunc", x)
    return call("trunc", x) if _is_float(x) else x


@elementwise("round")
def rounded(x: Scalar, *, decimals: int = 0) -> Scalar:
    _numbers("round", x)
    if not _is_float(x):
        return x
    power = 10.0 ** abs(decimals)
    if decimals > 0:
        return call("rint", x * power) / power
    return call("rint", x / power) * power if decimals else call("rint", x)


@elementwise("sign")
def sign(x: Scalar) -> Scalar:
    """NaN is what it is."""
    _numbers("sign", x)
    return where(x > 0, 1, x if x.dtype.kind == "u" else where(x < 0, -1, x))


@elementwise("signbit")
def signbit(x: Scalar) -> Scalar:
    return call("copysign", Scalar(const(1, x.dtype)), x) < 0


@elementwise("angle")
def angle(x: Scalar) -> Scalar:
    """Of a real number: 0, or pi where its sign is minus."""
    return call("arctan2", Scalar(const(0, x.dtype)), x)


# ----------------------------------------------------------------------------------------------------- extremes
@elementwise("clip")
def clip(x: Scalar, *, min: Any, max: Any) -> Scalar:
    _numbers("clip", x)
    return minimum(maximum(x, min), max)


@elementwise("fmax")
def fmax(x: Scalar, y: Scalar) -> Scalar:
    return _number_of(x, y, maximum)


@elementwise("fmin")
def fmin(x: Scalar, y: Scalar) -> Scalar:
    return _number_of(x, y, minimum)


def _number_of(x: Scalar, y: Scalar, extreme: Any) -> Scalar:
    """The number, where one of the two is NaN."""
    found = extreme(x, y)
    return where(x.differs(x), y, where(y.differs(y), x, found)) if _is_float(x) else found


@elementwise("logsigmoid")
def log_sigmoid(x: Scalar) -> Scalar:
    """-ln(1 + e^-x); far below 0 that is x."""
    return minimum(x, 0) - call("log1p", unary("exp", -absolute(x)))


# ----------------------------------------------------------------------------------------------------- division
@elementwise("floor_divide")
def floor_divide(x: Scalar, y: Scalar) -> Scalar:
    _divisor("floor_divide", y)
    return x // y


@elementwise("remainder")
def remainder(x: Scalar, y: Scalar) -> Scalar:
    _divisor("remainder", y)
    return x % y


def _divisor(name: str, y: Scalar) -> None:
    """The library kernel raises for ints that are divided by 0, so a divisor must be known not to be."""
    if not _is_float(y) and not (isinstance(y.expr, Const) and y.dtype != BOOL and y.expr.value):
        raise TypeError(f"{name} of {y.dtype}: only the kernel says what division by 0 is")


# --------------------------------------------------------------------------------------------- bits, of bools only
@elementwise("bitwise_and")
def bitwise_and(x: Scalar, y: Scalar) -> Scalar:
    return _bools("bitwise_and", x) & y


@elementwise("bitwise_or")
def bitwise_or(x: Scalar, y: Scalar) -> Scalar:
    return _bools("bitwise_or", x) | y


@elementwise("bitwise_xor")
def bitwise_xor(x: Scalar, y: Scalar) -> Scalar:
    return _bools("bitwise_xor", x).differs(y)


@elementwise("bitwise_not")
def bitwise_not(x: Scalar) -> Scalar:
    return unary("not", _bools("bitwise_not", x))


def _bools(name: str, x: Scalar) -> Scalar:
    if x.dtype != BOOL:
        raise TypeError(f"{name} of {x.dtype}: the loop IR has no operators on bits")
    return x
