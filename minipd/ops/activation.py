"""Activations and softmax: the rows.

What composes of these and of arithmetic without loss (relu6, elu, hardswish, ...) has no row: it is a function in
`minipd.nn.functional.activation`.  A row here saves memory (gelu keeps x alone, log_softmax its result), or is smooth
where the composition that does not overflow has a kink (logsigmoid).
"""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, tanh
from minipd.ops.families import Floating, Unary
from minipd.ops.making import into
from minipd.ops.math import minimum
from minipd.ops.promotion import unary
from minipd.ops.reduce import Sum
from minipd.ops.shapes import elementwise, normalize_axis, require_floating, shapes_agree
from minipd.ops.special import erf, scipy_ufunc

__all__ = ["relu", "sigmoid", "silu", "softmax", "swiglu"]


@op("relu")
class Relu(Unary):
    """out = max(x, 0)."""

    def kernel(xp, x):
        return xp.maximum(x, x.dtype.type(0))

    def kernel_out(xp, out, x):
        xp.maximum(x, x.dtype.type(0), out=out)

    def vjp_x(g, out):
        return g * cast(out > 0.0, g.payload.dtype)


@op("sigmoid")
class Sigmoid(Floating):
    """out = 1 / (1 + e^-x).  Where e^-x overflows, far left of 0, the result is 0."""

    def kernel(xp, x):
        return _sigmoid(xp, x)

    def kernel_out(xp, out, x):
        _sigmoid_into(xp, out, x)

    def vjp_x(g, out):
        return g * (out * (1.0 - out))


def _sigmoid(xp: Any, x: Any) -> Any:
    out = xp.empty_like(x)
    _sigmoid_into(xp, out, x)
    return out


def _sigmoid_into(xp: Any, out: Any, x: Any) -> None:
    """Four passes over one buffer."""
    xp.negative(x, out=out)
    with xp.errstate(over="ignore"):
        xp.exp(out, out=out)
    out += 1
    xp.reciprocal(out, out=out)


@op("logsigmoid")
class LogSigmoid(Floating):
    """out = log sigmoid(x) = min(x, 0) - log(1 + e^-|x|): nothing overflows, and small results keep their digits."""

    def kernel(xp, x):
        out = xp.empty_like(x)
        _log_sigmoid_into(xp, out, x)
        return out

    def kernel_out(xp, out, x):
        _log_sigmoid_into(xp, out, x)

    def vjp_x(g, x):                    # 1 - sigmoid(x), which for large x is no difference of two ones
        return g * sigmoid(-x)


def _log_sigmoid_into(xp: Any, out: Any, x: Any) -> None:
    xp.absolute(x, out=out)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    xp.log1p(out, out=out)
    xp.subtract(xp.minimum(x, x.dtype.type(0)), out, out=out)


@op("silu")
class Silu(Floating):
    """out = x * sigmoid(x)."""

    def kernel(xp, x):
        s = _sigmoid(xp, x)
        s *= x
        return s

    def kernel_out(xp, out, x):
        xp.multiply(x, _sigmoid(xp, x), out=out)

    def vjp_x(g, x):                    # s + x s (1 - s)
        s = sigmoid(x)
        return g * (s + x * s * (1.0 - s))


@op("swiglu", Trait.ELEMENTWISE)
class Swiglu:
    """out = silu(x) * y, the gated unit of Llama's MLP.  (Shazeer, GLU Variants Improve Transformer, 2020.)"""

    def infer_meta(x, y):
        require_floating("swiglu", x)
        if not shapes_agree(y.shape, x.shape, "swiglu"):
            raise ValueError(f"swiglu: expected x and y of one shape, got {list(x.shape)} and {list(y.shape)}")
        return elementwise("swiglu", x, y)

    def kernel(xp, x, y):
        s = _sigmoid(xp, x)
        s *= x
        s *= y
        return s

    def kernel_out(xp, out, x, y):
        s = _sigmoid(xp, x)
        s *= x
        xp.multiply(s, y, out=out)

    def vjp(g, x, y):                   # with a = silu(x):  d/dx = y (s + a (1 - s)),  d/dy = a
        s = sigmoid(x)
        a = x * s
        return g * y * (s + a * (1.0 - s)), g * a


@op("gelu")
class Gelu(Floating):
    """out = x Phi(x), Phi the normal distribution function; approximate: Phi by a tanh.  (Hendrycks, Gimpel 2016.)

    Phi(x) = erfc(-x / sqrt 2) / 2 keeps its digits far left of 0, where 1 + erf is a difference of two ones.
    """

    def infer_meta(what, x, *, approximate=False):
        return Floating.infer_meta(what, x)

    def kernel(xp, x, *, approximate=False):
        out = xp.empty_like(x)
        _gelu_into(xp, out, x, approximate)
        return out

    def kernel_out(xp, out, x, *, approximate=False):
        _gelu_into(xp, out, x, approximate)

    def vjp_x(g, x, approximate):
        if not approximate:             # Phi + x phi, with the density phi = e^(-x^2 / 2) / sqrt(2 pi)
            phi = exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
            return g * ((erf(x * math.sqrt(0.5)) + 1.0) * 0.5 + x * phi)
        square = minimum(x * x, 1e4)    # where t is 1 long since: an infinite slope times 1 - t^2 would be no number
        t = tanh(x * (square * (GELU_SCALE * GELU_CUBIC) + GELU_SCALE))
        slope = square * (3.0 * GELU_SCALE * GELU_CUBIC) + GELU_SCALE
        return g * ((t + 1.0) * 0.5 + x * (1.0 - t * t) * slope * 0.5)


#: the approximation: Phi(x) = (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
GELU_SCALE, GELU_CUBIC = math.sqrt(2.0 / math.pi), 0.044715


_, erfc_into = scipy_ufunc("erfc")


def _gelu_into(xp: Any, out: Any, x: Any, approximate: bool) -> None:
    number = x.dtype.type
    if approximate:
        xp.multiply(x, x, out=out)
        out *= number(GELU_SCALE * GELU_CUBIC)
        out += number(GELU_SCALE)
        out *= x
        xp.tanh(out, out=out)
        out += number(1)
    else:
        xp.multiply(x, number(-math.sqrt(0.5)), out=out)
        erfc_into(xp, out, out)
    out *= number(0.5)
    out *= x


@op("softmax")
class Softmax:
    """e^x / sum e^x over `axis`; the maximum is taken off first.  A row that is all -inf gives NaN, as numpy's does."""

    def infer_meta(x, *, axis):
        require_floating("softmax", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, axis):
        return _softmax(xp, x, axis)

    def kernel_out(xp, out, x, *, axis):
        _softmax(xp, x, axis, out)

    def vjp_x(g, out, axis):
        return (g - Sum(g * out, axis=(axis,), keepdim=True)) * out


def _softmax(xp: Any, x: Any, axis: int, out: Any = None) -> Any:
    if not x.size:
        return xp.empty_like(x)
    out = xp.subtract(x, xp.maximum.reduce(x, axis=axis, keepdims=True), out=out)       # inf - inf is NaN
    xp.exp(out, out=out)
    return xp.true_divide(out, xp.add.reduce(out, axis=axis, keepdims=True), out=out)


@op("log_softmax")
class LogSoftmax:
    """x - log sum e^x over `axis`; the maximum is taken off first.  A row that is all -inf gives NaN, as in softmax."""

    def infer_meta(x, *, axis):
        require_floating("log_softmax", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, axis):
        return _log_softmax(xp, x, axis)

    def kernel_out(xp, out, x, *, axis):
        _log_softmax(xp, x, axis, out)

    def vjp_x(g, out, axis):
        return g - exp(out) * Sum(g, axis=(axis,), keepdim=True)


def _log_softmax(xp: Any, x: Any, axis: int, out: Any = None) -> Any:
    if not x.size:
        return xp.empty_like(x)
    out = xp.subtract(x, xp.maximum.reduce(x, axis=axis, keepdims=True), out=out)       # inf - inf is NaN
    return xp.subtract(out, xp.log(xp.add.reduce(xp.exp(out), axis=axis, keepdims=True)), out=out)


relu, sigmoid, silu = unary(Relu), unary(Sigmoid, floating=True), unary(Silu, floating=True)
log_sigmoid = unary(LogSigmoid)


def softmax(x: Tensor, axis: int = -1, dtype: Any = None, name: str | None = None, *,
            out: Tensor | None = None) -> Tensor:
    """e^x / sum e^x over `axis`.  dtype: x is cast to it first.  out: a tensor that becomes the result.

    >>> from minipd.ops.creation import to_tensor
    >>> softmax(to_tensor([0.0, 0.0])).tolist()
    [0.5, 0.5]
    """
    x = x if dtype is None else cast(x, dtype)
    return into(out, Softmax(x, axis=normalize_axis("softmax", axis, x.ndim)))


def swiglu(x: Tensor, y: Tensor | None = None, name: str | None = None) -> Tensor:
    """silu(x) * y; with y left out, x is split in two along its last dimension."""
    if y is None:
        x, y = x.split(2, -1)
    return Swiglu(x, y)
