"""Special functions: error, gamma and Bessel functions, by scipy.special (cupyx.scipy.special has the same names).

scipy is imported when a kernel first runs: `import minipd` does not need it.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.elementary import exp, log, sin
from minipd.ops.families import Floating, FloatingBinary
from minipd.ops.math import square, where
from minipd.ops.pointwise import clip
from minipd.ops.promotion import as_floating, binary, unary
from minipd.ops.rounding import sign
from minipd.ops.shapes import a_number, require_floating

__all__ = ["digamma", "erf", "erfinv", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "lgamma", "logit",
           "multigammaln", "polygamma", "sinc"]


def _special(module: str, name: str) -> Any:
    return getattr(importlib.import_module("scipy.special" if module == "numpy" else "cupyx.scipy.special"), name)


def scipy_ufunc(name: str) -> tuple[Any, Any]:
    """A kernel that is scipy's ufunc `name`, and the same into a buffer."""
    def kernel(xp, *xs):
        return _special(xp.__name__, name)(*_of_one_dtype(xs))

    def kernel_out(xp, out, *xs):
        _special(xp.__name__, name)(*_of_one_dtype(xs), out=out)
    return kernel, kernel_out


def _of_one_dtype(xs: tuple) -> Any:
    """A Python number takes the dtype of the array beside it, as numpy's ufuncs have it; scipy's make float64 of it."""
    dtype = next(x.dtype for x in xs if hasattr(x, "dtype"))
    return [x if hasattr(x, "dtype") else dtype.type(x) for x in xs]


# ------------------------------------------------------------------------------------------------ error functions
@op("erf")
class Erf(Floating):
    """out = 2 / sqrt(pi) * the integral of e^(-t^2) from 0 to x."""

    kernel, kernel_out = scipy_ufunc("erf")

    def vjp_x(g, x):
        return g * exp(-square(x)) * (2.0 / math.sqrt(math.pi))


@op("erfinv")
class ErfInv(Floating):
    """The out with erf(out) = x; infinite at -1 and 1, NaN beyond."""

    kernel, kernel_out = scipy_ufunc("erfinv")

    def vjp_x(g, out):
        return g * exp(square(out)) * (math.sqrt(math.pi) / 2.0)


# ------------------------------------------------------------------------------------------------ gamma functions
@op("lgamma")
class LGamma(Floating):
    """out = ln |gamma(x)|; infinite at 0, -1, -2, ..."""

    kernel, kernel_out = scipy_ufunc("gammaln")

    def vjp_x(g, x):
        return g * digamma(x)


@op("digamma")
class Digamma(Floating):
    """The derivative of ln gamma(x)."""

    kernel, kernel_out = scipy_ufunc("psi")

    def vjp_x(g, x):
        return g * Polygamma(x, n=1)


@op("polygamma")
class Polygamma(Floating):
    """The n-th derivative of digamma(x); n = 0 is digamma itself."""

    def infer_meta(x, *, n):
        require_floating("polygamma", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, n):
        return xp.asarray(_special(xp.__name__, "polygamma")(n, x)).astype(x.dtype)

    def kernel_out(xp, out, x, *, n):
        out[...] = _special(xp.__name__, "polygamma")(n, x)

    def vjp_x(g, x, n):
        return g * Polygamma(x, n=n + 1)


@op("gammainc")
class GammaInc(FloatingBinary):
    """The part of gamma(x) that the integral of t^(x-1) e^(-t) from 0 to y makes, broadcast.  No gradient for x."""

    kernel, kernel_out = scipy_ufunc("gammainc")

    def vjp_y(g, x, y):
        return reduce_to(g * _gamma_density(x, y), y)


@op("gammaincc")
class GammaIncC(FloatingBinary):
    """The part of gamma(x) that the integral of t^(x-1) e^(-t) from y on makes, broadcast.  No gradient for x."""

    kernel, kernel_out = scipy_ufunc("gammaincc")

    def vjp_y(g, x, y):
        return reduce_to(-(g * _gamma_density(x, y)), y)


def _gamma_density(x: Any, y: Tensor) -> Tensor:
    """y^(x-1) e^-y / gamma(x)"""
    weight = lgamma(x) if isinstance(x, Tensor) else math.lgamma(x)
    return exp(log(y) * (x - 1.0) - y - weight)


# ----------------------------------------------------------------------------------------------- Bessel functions
@op("i0")
class I0(Floating):
    """The modified Bessel function of the first kind, of order 0."""

    kernel, kernel_out = scipy_ufunc("i0")

    def vjp_x(g, x):
        return g * i1(x)


@op("i0e")
class I0e(Floating):
    """out = e^-|x| i0(x)"""

    kernel, kernel_out = scipy_ufunc("i0e")

    def vjp_x(g, x, out):
        return g * (i1e(x) - sign(x) * out)


@op("i1")
class I1(Floating):
    """The modified Bessel function of the first kind, of order 1."""

    kernel, kernel_out = scipy_ufunc("i1")

    def vjp_x(g, x, out):               # i0(x) - out / x, which is 1/2 at 0
        return g * (i0(x) - _over(out, x))


@op("i1e")
class I1e(Floating):
    """out = e^-|x| i1(x)"""

    kernel, kernel_out = scipy_ufunc("i1e")

    def vjp_x(g, x, out):
        return g * (i0e(x) - sign(x) * out - _over(out, x))


def _over(out: Tensor, x: Tensor) -> Tensor:
    """out / x for an `out` that is x / 2 near 0."""
    return where(x == 0.0, 0.5, out / where(x == 0.0, 1.0, x))


# ----------------------------------------------------------------------------------------------- public functions
erf, erfinv, lgamma, digamma, i0, i0e, i1, i1e = (
    unary(row, floating=True) for row in (Erf, ErfInv, LGamma, Digamma, I0, I0e, I1, I1e))
gammainc, gammaincc = binary(GammaInc, floating=True), binary(GammaIncC, floating=True)
gammaln = lgamma


def polygamma(x: Tensor, n: int, name: str | None = None) -> Tensor:
    """The n-th derivative of digamma(x).

    Raises: ValueError for a negative n.

    >>> from minipd.ops.creation import to_tensor
    >>> polygamma(to_tensor([1.0]), 1).tolist()         # pi^2 / 6
    [1.644934058189392]
    """
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"polygamma: expected n to be 0 or a positive int, got {n!r}")
    return digamma(x) if n == 0 else Polygamma(as_floating("polygamma", x), n=n)


def multigammaln(x: Tensor, p: int, name: str | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p.   x > (p - 1) / 2.

    >>> from minipd.ops.creation import to_tensor
    >>> multigammaln(to_tensor([3.0]), 1).tolist()      # ln 2!
    [0.6931471824645996]
    """
    if not isinstance(p, int) or not 1 <= p <= 10_000:
        raise ValueError(f"multigammaln: expected the dimension p to be an int from 1 to 10000, got {p!r}; it is a sum "
                         "of p terms")
    x = as_floating("multigammaln", x)
    total = lgamma(x)
    for i in range(1, p):
        total = total + lgamma(x - i / 2.0)
    return total + p * (p - 1) / 4.0 * math.log(math.pi)


def logit(x: Tensor, eps: float | None = None, name: str | None = None) -> Tensor:
    """ln(x / (1 - x)): the inverse of the sigmoid.   eps: x is clipped to [eps, 1 - eps] first.

    >>> from minipd.ops.creation import to_tensor
    >>> logit(to_tensor([0.5, 2.0]), eps=0.5).tolist()
    [0.0, 0.0]
    """
    x = as_floating("logit", x)
    if eps is not None:
        eps = a_number("logit", "eps", eps)
        if not 0 <= eps <= 0.5:
            raise ValueError(f"logit: expected eps in [0, 0.5], got {eps}")
        x = clip(x, eps, 1.0 - eps)
    return log(x / (1.0 - x))


def sinc(x: Tensor, name: str | None = None) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0.

    >>> from minipd.ops.creation import to_tensor
    >>> sinc(to_tensor([0.0, 0.5])).tolist()
    [1.0, 0.6366197466850281]
    """
    x = as_floating("sinc", x)
    angle = where(x == 0.0, 1e-20, x) * math.pi
    return sin(angle) / angle
