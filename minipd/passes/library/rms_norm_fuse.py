"""x * rsqrt(mean(x^2) + epsilon) * weight, as `paddle.nn.RMSNorm` composes it, becomes `pd_op.rms_norm`.

    (%2) = "pd_op.square" (%0)                                    (%2) = "pd_op.rms_norm" (%0, %1) {epsilon:1e-06}
    (%3) = "pd_op.mean" (%2, axis) {keepdim:true}
    (%4) = "pd_op.add" (%3, 1e-06)
    (%5) = "pd_op.rsqrt" (%4)                              ->
    (%6) = "pd_op.multiply" (%0, %5)
    (%7) = "pd_op.multiply" (%6, %1)
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
    "ByRsqrt": lambda x, m: x * ops.rsqrt(m), "BySqrt": lambda x, m: x / ops.sqrt(m)}
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


for _root in ROOTS:
    for _squares in SQUARES:
        if (_root, _squares) != ("ByRsqrt", "OfSquares"):       # which is RmsNorm
            _rule = composed(ROOTS[_root], SQUARES[_squares])
            _rule.__name__ += _squares + _root
            drr(NAME)(_rule)
