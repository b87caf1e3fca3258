"""Rules of the mean, and of what divides by a sum over a dimension."""

from __future__ import annotations

from minipd.decomposition.table import decompose_rule
from minipd.framework.dim import is_symbolic, prod, same
from minipd.framework.tensor import Tensor
from minipd.ops.creation import Full
from minipd.ops.elementary import exp, rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Max, Sum

__all__: list[str] = []


@decompose_rule("mean")
def mean(x: Tensor, *, axis: tuple, keepdim: bool = False) -> Tensor:
    """The sum over the *global* count: a mean of the shards' means is wrong where shards are uneven."""
    n = prod(x.payload.shape[a] for a in axis)
    count = Full(shape=(), value=n, dtype=x.payload.dtype) if is_symbolic(n) else float(n)
    return Sum(x, axis=axis, keepdim=keepdim) / count


@decompose_rule("rms_norm")
def rms_norm(x: Tensor, scale: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    """x / sqrt(mean(x^2) + epsilon) * scale over the dimensions that scale has."""
    axis = tuple(range(x.ndim - scale.ndim, x.ndim))
    return x * rsqrt(mean(square(x), axis=axis, keepdim=True) + epsilon) * scale


@decompose_rule("softmax")
def softmax(x: Tensor, *, axis: int) -> Tensor:
    """e^(x - max) / sum e^(x - max)."""
    e = exp(shifted(x, axis))
    return e / Sum(e, axis=(axis,), keepdim=True)


def shifted(x: Tensor, axis: int) -> Tensor:
    """x minus its maximum over `axis`, which nothing has none of."""
    return x if same(x.payload.shape[axis], 0) else x - Max(x, axis=(axis,), keepdim=True)
