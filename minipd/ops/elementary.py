"""Elementary functions of one floating operand."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op, ufunc
from minipd.ops.promotion import unary
from minipd.ops.shapes import require_floating

__all__ = ["cos", "exp", "log", "rsqrt", "sin", "sqrt", "tanh"]


@op("exp", Trait.ELEMENTWISE)
class Exp:
    """out = e ** x."""

    def infer_meta(x):
        return _floating("exp", x)

    kernel = ufunc("exp")

    def vjp_x(g, out):
        return g * out


@op("log", Trait.ELEMENTWISE)
class Log:
    """out = ln x; -inf at 0, NaN below."""

    def infer_meta(x):
        return _floating("log", x)

    def kernel(xp, x):
        with xp.errstate(divide="ignore", invalid="ignore"):
            return xp.log(x)

    def kernel_out(xp, out, x):
        with xp.errstate(divide="ignore", invalid="ignore"):
            xp.log(x, out=out)

    def vjp_x(g, x):
        return g / x


@op("sqrt", Trait.ELEMENTWISE)
class Sqrt:
    """out = x ** 0.5; NaN below 0."""

    def infer_meta(x):
        return _floating("sqrt", x)

    kernel = ufunc("sqrt")

    def vjp_x(g, out):
        return g * 0.5 / out


@op("rsqrt", Trait.ELEMENTWISE)
class Rsqrt:
    """out = 1 / sqrt(x)."""

    def infer_meta(x):
        return _floating("rsqrt", x)

    def kernel(xp, x):
        return xp.reciprocal(xp.sqrt(x))

    def kernel_out(xp, out, x):
        xp.sqrt(x, out=out)
        xp.reciprocal(out, out=out)

    def vjp_x(g, out):                  # d/dx x^(-1/2) = -1/2 x^(-3/2) = -1/2 out^3
        return g * (out * out * out) * -0.5


@op("tanh", Trait.ELEMENTWISE)
class Tanh:
    """out = (e^x - e^-x) / (e^x + e^-x)."""

    def infer_meta(x):
        return _floating("tanh", x)

    kernel = ufunc("tanh")

    def vjp_x(g, out):
        return g * (1.0 - out * out)


@op("sin", Trait.ELEMENTWISE)
class Sin:
    """out = sin x, x in radians."""

    def infer_meta(x):
        return _floating("sin", x)

    kernel = ufunc("sin")

    def vjp_x(g, x):
        return g * cos(x)


@op("cos", Trait.ELEMENTWISE)
class Cos:
    """out = cos x, x in radians."""

    def infer_meta(x):
        return _floating("cos", x)

    kernel = ufunc("cos")

    def vjp_x(g, x):
        return -(g * sin(x))


def _floating(what: str, x: Any) -> Meta:
    require_floating(what, x)
    return Meta(x.shape, x.dtype)


exp, log, sqrt, rsqrt, tanh, sin, cos = (unary(row, floating=True) for row in (Exp, Log, Sqrt, Rsqrt, Tanh, Sin, Cos))
