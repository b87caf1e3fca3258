"""Elementary functions of one floating operand."""

from __future__ import annotations

from minipd.framework.row import op, ufunc
from minipd.ops.families import Analytic
from minipd.ops.promotion import unary

__all__ = ["cos", "exp", "log", "rsqrt", "sin", "sqrt", "tanh"]


@op("exp")
class Exp(Analytic):
    """out = e ** x."""

    kernel = ufunc("exp")

    def vjp_x(g, out):
        return g * out


@op("log")
class Log(Analytic):
    """out = ln x; -inf at 0, NaN below."""

    kernel = ufunc("log")

    def vjp_x(g, x):
        return g / x


@op("sqrt")
class Sqrt(Analytic):
    """out = x ** 0.5; NaN below 0."""

    kernel = ufunc("sqrt")

    def vjp_x(g, out):
        return g * 0.5 / out


@op("rsqrt")
class Rsqrt(Analytic):
    """out = 1 / sqrt(x)."""

    def kernel(xp, x):
        return xp.reciprocal(xp.sqrt(x))

    def kernel_out(xp, out, x):
        xp.sqrt(x, out=out)
        xp.reciprocal(out, out=out)

    def vjp_x(g, out):                  # d/dx x^(-1/2) = -1/2 x^(-3/2) = -1/2 out^3
        return g * (out * out * out) * -0.5


@op("tanh")
class Tanh(Analytic):
    """out = (e^x - e^-x) / (e^x + e^-x)."""

    kernel = ufunc("tanh")

    def vjp_x(g, out):
        return g * (1.0 - out * out)


@op("sin")
class Sin(Analytic):
    """out = sin x, x in radians."""

    kernel = ufunc("sin")

    def vjp_x(g, x):
        return g * cos(x)


@op("cos")
class Cos(Analytic):
    """out = cos x, x in radians."""

    kernel = ufunc("cos")

    def vjp_x(g, x):
        return -(g * sin(x))


exp, log, sqrt, rsqrt, tanh, sin, cos = (unary(row, floating=True) for row in (Exp, Log, Sqrt, Rsqrt, Tanh, Sin, Cos))
