"""Elementary functions of one operand: powers, logarithms, circular and hyperbolic functions."""

from __future__ import annotations

import math

from minipd.framework.row import op, ufunc
from minipd.framework.tensor import Tensor
from minipd.ops.families import Analytic
from minipd.ops.promotion import as_floating, unary
from minipd.ops.shapes import a_number

__all__ = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "deg2rad", "exp", "expm1", "log", "log10",
           "log1p", "log2", "rad2deg", "reciprocal", "rsqrt", "sin", "sinh", "sqrt", "stanh", "tan", "tanh"]


# ----------------------------------------------------------------------------------------- powers and logarithms
@op("exp")
class Exp(Analytic):
    """out = e ** x."""

    kernel = ufunc("exp")

    def vjp_x(g, out):
        return g * out


@op("expm1")
class Expm1(Analytic):
    """out = e ** x - 1, exact where x is small."""

    kernel = ufunc("expm1")

    def vjp_x(g, out):
        return g * (out + 1.0)


@op("log")
class Log(Analytic):
    """out = ln x; -inf at 0, NaN below."""

    kernel = ufunc("log")

    def vjp_x(g, x):
        return g / x


@op("log2")
class Log2(Analytic):
    """out = the logarithm of x to the base 2; -inf at 0, NaN below."""

    kernel = ufunc("log2")

    def vjp_x(g, x):
        return g / (x * math.log(2.0))


@op("log10")
class Log10(Analytic):
    """out = the logarithm of x to the base 10; -inf at 0, NaN below."""

    kernel = ufunc("log10")

    def vjp_x(g, x):
        return g / (x * math.log(10.0))


@op("log1p")
class Log1p(Analytic):
    """out = ln (1 + x), exact where x is small; -inf at -1, NaN below."""

    kernel = ufunc("log1p")

    def vjp_x(g, x):
        return g / (x + 1.0)


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


@op("reciprocal")
class Reciprocal(Analytic):
    """out = 1 / x."""

    kernel = ufunc("reciprocal")

    def vjp_x(g, out):
        return -(g * out * out)


# ------------------------------------------------------------------------------------------- hyperbolic functions
@op("sinh")
class Sinh(Analytic):
    """out = (e^x - e^-x) / 2."""

    kernel = ufunc("sinh")

    def vjp_x(g, x):
        return g * cosh(x)


@op("cosh")
class Cosh(Analytic):
    """out = (e^x + e^-x) / 2."""

    kernel = ufunc("cosh")

    def vjp_x(g, x):
        return g * sinh(x)


@op("tanh")
class Tanh(Analytic):
    """out = (e^x - e^-x) / (e^x + e^-x)."""

    kernel = ufunc("tanh")

    def vjp_x(g, out):
        return g * (1.0 - out * out)


@op("asinh")
class Asinh(Analytic):
    """The out with sinh out = x."""

    kernel = ufunc("arcsinh")

    def vjp_x(g, x):
        return g * rsqrt(x * x + 1.0)


@op("acosh")
class Acosh(Analytic):
    """The non-negative out with cosh out = x; NaN below 1."""

    kernel = ufunc("arccosh")

    def vjp_x(g, x):                    # two roots, for complex x: their product would have another branch
        return g * rsqrt(x - 1.0) * rsqrt(x + 1.0)


@op("atanh")
class Atanh(Analytic):
    """The out with tanh out = x; infinite at -1 and 1, NaN beyond."""

    kernel = ufunc("arctanh")

    def vjp_x(g, x):
        return g / (1.0 - x * x)


# --------------------------------------------------------------------------------------------- circular functions
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


@op("tan")
class Tan(Analytic):
    """out = tan x, x in radians."""

    kernel = ufunc("tan")

    def vjp_x(g, out):
        return g * (out * out + 1.0)


@op("asin")
class Asin(Analytic):
    """The angle in [-pi/2, pi/2] whose sine is x; NaN where |x| > 1."""

    kernel = ufunc("arcsin")

    def vjp_x(g, x):
        return g * rsqrt(1.0 - x * x)


@op("acos")
class Acos(Analytic):
    """The angle in [0, pi] whose cosine is x; NaN where |x| > 1."""

    kernel = ufunc("arccos")

    def vjp_x(g, x):
        return -(g * rsqrt(1.0 - x * x))


@op("atan")
class Atan(Analytic):
    """The angle in (-pi/2, pi/2) whose tangent is x."""

    kernel = ufunc("arctan")

    def vjp_x(g, x):
        return g / (x * x + 1.0)


exp, expm1, log, log2, log10, log1p, sqrt, rsqrt, reciprocal = (
    unary(row, floating=True) for row in (Exp, Expm1, Log, Log2, Log10, Log1p, Sqrt, Rsqrt, Reciprocal))
sinh, cosh, tanh, asinh, acosh, atanh = (
    unary(row, floating=True) for row in (Sinh, Cosh, Tanh, Asinh, Acosh, Atanh))
sin, cos, tan, asin, acos, atan = (unary(row, floating=True) for row in (Sin, Cos, Tan, Asin, Acos, Atan))


def deg2rad(x: Tensor, name: str | None = None) -> Tensor:
    """Degrees to radians.

    >>> from minipd.ops.creation import to_tensor
    >>> deg2rad(to_tensor([180.0])).tolist()
    [3.1415927410125732]
    """
    return as_floating("deg2rad", x) * (math.pi / 180.0)


def rad2deg(x: Tensor, name: str | None = None) -> Tensor:
    """Radians to degrees.

    >>> from minipd.ops.creation import to_tensor
    >>> rad2deg(to_tensor([0.0])).tolist()
    [0.0]
    """
    return as_floating("rad2deg", x) * (180.0 / math.pi)


def stanh(x: Tensor, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Tensor:
    """scale_b * tanh(scale_a * x).

    >>> from minipd.ops.creation import to_tensor
    >>> stanh(to_tensor([0.0])).tolist()
    [0.0]
    """
    x = as_floating("stanh", x)
    return tanh(x * a_number("stanh", "scale_a", scale_a)) * a_number("stanh", "scale_b", scale_b)
