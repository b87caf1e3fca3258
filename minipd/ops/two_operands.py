"""Element-wise functions of two operands beyond arithmetic."""

from __future__ import annotations

from typing import Any

from minipd.framework.row import Trait, op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.cast import cast
from minipd.ops.elementary import exp
from minipd.ops.families import Binary, FloatingBinary
from minipd.ops.math import where
from minipd.ops.promotion import as_tensor, binary, promoted

__all__ = ["atan2", "fmax", "fmin", "heaviside", "hypot", "logaddexp"]


@op("fmax")
class Fmax(Binary):
    """out = max(x, y), broadcast; the number, where one of them is NaN.  Of equal ones x has the gradient."""

    kernel = ufunc("fmax")

    def vjp_x(g, x, y):
        return reduce_to(g * _is_first(x >= y, y, g), x)

    def vjp_y(g, x, y):
        return reduce_to(g * (1.0 - _is_first(x >= y, y, g)), y)


@op("fmin")
class Fmin(Binary):
    """out = min(x, y), broadcast; the number, where one of them is NaN.  Of equal ones x has the gradient."""

    kernel = ufunc("fmin")

    def vjp_x(g, x, y):
        return reduce_to(g * _is_first(x <= y, y, g), x)

    def vjp_y(g, x, y):
        return reduce_to(g * (1.0 - _is_first(x <= y, y, g)), y)


def _is_first(wins: Tensor, y: Any, g: Tensor) -> Tensor:
    """1 where the first operand has won, or the other is NaN; else 0."""
    return cast(wins | (y != y), g.dtype)


@op("atan2")
class Atan2(FloatingBinary):
    """The angle in (-pi, pi] from the positive horizontal axis to the point x high and y wide, broadcast."""

    kernel = ufunc("arctan2")

    def vjp_x(g, x, y):
        return reduce_to(g * y / (x * x + y * y), x)

    def vjp_y(g, x, y):
        return reduce_to(-(g * x / (x * x + y * y)), y)


@op("hypot", Trait.COMMUTATIVE)
class Hypot(FloatingBinary):
    """out = sqrt(x * x + y * y), broadcast, without overflow on the way; gradient 0 where both are 0."""

    kernel = ufunc("hypot")

    def vjp_x(g, x, out):
        return reduce_to(g * x / where(out == 0.0, 1.0, out), x)

    def vjp_y(g, y, out):
        return reduce_to(g * y / where(out == 0.0, 1.0, out), y)


@op("logaddexp", Trait.COMMUTATIVE)
class LogAddExp(FloatingBinary):
    """out = ln(e^x + e^y), broadcast, without overflow on the way."""

    kernel = ufunc("logaddexp")

    def vjp_x(g, x, out):
        return reduce_to(g * exp(x - out), x)

    def vjp_y(g, y, out):
        return reduce_to(g * exp(y - out), y)


fmax, fmin = binary(Fmax), binary(Fmin)
atan2, hypot, logaddexp = (binary(row, floating=True) for row in (Atan2, Hypot, LogAddExp))


def heaviside(x: Tensor, y: Any, name: str | None = None) -> Tensor:
    """The step function: 0 where x < 0, y where x is 0, 1 where x > 0, broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> heaviside(to_tensor([-2.0, 0.0, 3.0]), to_tensor([0.5])).tolist()
    [0.0, 0.5, 1.0]
    """
    x, y = promoted("heaviside", as_tensor("heaviside", x), y)
    return where(x == 0, y, cast(x > 0, x.dtype))
