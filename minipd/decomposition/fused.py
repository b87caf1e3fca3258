"""Decomposition of operators that fuse several: what they are made of, again."""

from __future__ import annotations

from minipd.decomposition.table import decompose_rule
from minipd.framework.tensor import Tensor
from minipd.ops.elementary import rsqrt
from minipd.ops.joining import concat
from minipd.ops.math import square
from minipd.ops.reduce import Mean
from minipd.ops.rope import halves

__all__: list[str] = []


@decompose_rule("rms_norm")
def rms_norm(x: Tensor, scale: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """x (mean(x^2) + epsilon)^(-1/2) scale."""
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    return x * rsqrt(Mean(square(x), axis=axis, keepdim=True) + epsilon) * scale


@decompose_rule("standardize")
def standardize(x: Tensor, *, axis: tuple, epsilon: float = 1e-5) -> tuple[Tensor, Tensor, Tensor]:
    """(x - mean) (variance + epsilon)^(-1/2), mean, variance."""
    mean = Mean(x, axis=axis, keepdim=True)
    deviation = x - mean
    variance = Mean(square(deviation), axis=axis, keepdim=True)
    return deviation * rsqrt(variance + epsilon), mean, variance


@decompose_rule("fused_rotary_position_embedding")
def fused_rotary_position_embedding(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(a cos - b sin, b cos + a sin) for the halves a, b of x."""
    a, b = halves(x)
    return concat([a * cos - b * sin, b * cos + a * sin], x.ndim - 1)
