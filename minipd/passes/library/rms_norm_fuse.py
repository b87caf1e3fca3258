"""A norm, as `paddle.nn` and others compose it, becomes one operator, with the sum before it: `pd_op.rms_norm` for
x * rsqrt(mean(x^2) + epsilon) * weight; in `layer_norm_fuse`, what the same pass does with layer norms, and with sums.

    >>> from minipd.nn import RMSNorm
    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("add_norm_fuse_pass", RMSNorm(8), (2, 8)))
    before
      a = square(input)
      b = mean(a, keepdim=True, axis=(1,))
      c = add(b, 1e-05)
      d = rsqrt(c)
      e = multiply(input, d)
      f = multiply(e, weight)
      return f
    after
      a = rms_norm(input, weight)
      return a

The square, the root and the order of factors as authors write them; of low precision, what is normalised in float32 and
rounded before the weight, as in published Llamas.  Rounds otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []

NAME = "add_norm_fuse_pass"             # Paddle's pass of this name holds its rules for rms_norm and layer_norm


def over_last(x: Any, weight: Any, axis: tuple) -> bool:
    """Whether the mean goes over the dimensions of `weight`, which are the last of x."""
    n = weight.ndim
    return n > 0 and axis == tuple(range(x.ndim - n, x.ndim)) and x.shape[x.ndim - n:] == weight.shape


@drr(NAME)
class RmsNorm:
    """In the precision of x."""

    def source(x, weight, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * weight

    def constraint(x, weight, axis):
        return over_last(x, weight, axis) and x.dtype == weight.dtype

    def result(x, weight, epsilon):
        return ops.rms_norm(x, weight, epsilon=epsilon)


@drr(NAME)
class RmsNormOfLowPrecision:
    """Normalised in float32 and rounded before the weight; the operator rounds once, after it."""

    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.mean(ops.square(h), axis=axis, keepdim=True) + epsilon)
        return ops.cast(n, dtype=narrow) * weight

    def constraint(x, weight, axis, wide, narrow):
        return (over_last(x, weight, axis) and x.dtype == weight.dtype == narrow and x.dtype in dtypes.LOW_PRECISION
                and wide == dtypes.float32.np)

    def result(x, weight, epsilon):
        return ops.rms_norm(x, weight, epsilon=epsilon)


# ----------------------------------------------------------------------------------------- written out by hand
#: how x / sqrt(mean(x^2) + epsilon) is written, besides the way of RmsNorm
ROOTS: dict[str, Callable[[Any, Any], Any]] = {
    "ByRsqrt": lambda x, m: x * ops.rsqrt(m), "BySqrt": lambda x, m: x / ops.sqrt(m),
    "ByInverse": lambda x, m: x * (1.0 / ops.sqrt(m))}
SQUARES: dict[str, Callable[[Any], Any]] = {
    "OfSquares": lambda x: ops.square(x), "OfPowers": lambda x: x ** 2.0, "OfProducts": lambda x: x * x}


def composed(root: Callable, squared: Callable) -> type:
    """x / sqrt(mean(x^2) + epsilon) * weight."""
    class RmsNorm:
        def source(x, weight, *, axis, epsilon):
            return root(x, ops.mean(squared(x), axis=axis, keepdim=True) + epsilon) * weight

        def constraint(x, weight, axis):
            return over_last(x, weight, axis) and x.dtype == weight.dtype

        def result(x, weight, epsilon):
            return ops.rms_norm(x, weight, epsilon=epsilon)
    RmsNorm.__doc__ = composed.__doc__
    return RmsNorm


def composed_of_low_precision(root: Callable, squared: Callable) -> type:
    """weight * (h / sqrt(mean(h^2) + epsilon)) where h is x in float32, and rounded back before the weight."""
    class RmsNormOfLowPrecision:
        def source(x, weight, *, axis, epsilon, wide, narrow):
            h = ops.cast(x, dtype=wide)
            return ops.cast(root(h, ops.mean(squared(h), axis=axis, keepdim=True) + epsilon), dtype=narrow) * weight

        def constraint(x, weight, axis, wide, narrow):
            return (over_last(x, weight, axis) and x.dtype == weight.dtype == narrow and x.dtype in dtypes.LOW_PRECISION
                    and wide == dtypes.float32.np)

        def result(x, weight, epsilon):
            return ops.rms_norm(x, weight, epsilon=epsilon)
    RmsNormOfLowPrecision.__doc__ = composed_of_low_precision.__doc__
    return RmsNormOfLowPrecision


for _root in ROOTS:
    for _squares in SQUARES:
        if (_root, _squares) != ("ByRsqrt", "OfSquares"):       # which are RmsNorm and RmsNormOfLowPrecision
            for _make in composed, composed_of_low_precision:
                _rule = _make(ROOTS[_root], SQUARES[_squares])
                _rule.__name__ += _squares + _root
                drr(NAME)(_rule)
