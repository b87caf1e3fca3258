"""Rules of the mean, and of what divides by a sum over a dimension."""

from __future__ import annotations

from minipd.decomposition.table import decompose_rule
from minipd.framework.dim import is_symbolic, prod, same
from minipd.framework.tensor import Tensor
from minipd.ops.creation import Full
from minipd.ops.elementary import exp, log, sqrt
from minipd.ops.logic import isfinite
from minipd.ops.math import abs, where
from minipd.ops.reduce import Max, Sum
from minipd.ops.reshape import Squeeze

__all__: list[str] = []


@decompose_rule("mean")
def mean(x: Tensor, *, axis: tuple, keepdim: bool = False) -> Tensor:
    """The sum over the *global* count: a mean of the shards' means is wrong where shards are uneven."""
    n = prod(x.payload.shape[a] for a in axis)
    count = Full(shape=(), value=n, dtype=x.payload.dtype) if is_symbolic(n) else float(n)
    return Sum(x, axis=axis, keepdim=keepdim) / count


@decompose_rule("softmax")
def softmax(x: Tensor, *, axis: int) -> Tensor:
    """e^(x - max) / sum e^(x - max)."""
    e = exp(shifted(x, axis))
    return e / Sum(e, axis=(axis,), keepdim=True)


@decompose_rule("log_softmax")
def log_softmax(x: Tensor, *, axis: int) -> Tensor:
    """z - log sum e^z with z = x - max."""
    z = shifted(x, axis)
    return z - log(Sum(exp(z), axis=(axis,), keepdim=True))


@decompose_rule("logsumexp")
def logsumexp(x: Tensor, *, axis: tuple, keepdim: bool = False) -> Tensor:
    """max + log sum e^(x - max), with 0 in place of a maximum that is not finite, and of one of nothing."""
    if any(same(x.payload.shape[a], 0) for a in axis):
        return log(Sum(exp(x), axis=axis, keepdim=keepdim))
    largest = Max(x, axis=axis, keepdim=True)
    largest = where(isfinite(largest), largest, 0.0)
    total = log(Sum(exp(x - largest), axis=axis, keepdim=keepdim))
    return total + (largest if keepdim else Squeeze(largest, axis=axis))


@decompose_rule("p_norm")
def p_norm(x: Tensor, *, porder: float, axis: tuple, keepdim: bool = False) -> Tensor:
    """(sum |x|^porder)^(1 / porder)"""
    size = abs(x)
    if porder == 1:
        return Sum(size, axis=axis, keepdim=keepdim)
    total = Sum(size * size if porder == 2 else size ** porder, axis=axis, keepdim=keepdim)
    return sqrt(total) if porder == 2 else total ** (1.0 / porder)


def shifted(x: Tensor, axis: int) -> Tensor:
    """x minus its maximum over `axis`, in the shape of x: e^shifted overflows nowhere, and its sum is at least 1.

    Where `axis` has no elements there is no maximum, and x is what it is.
    """
    return x if same(x.payload.shape[axis], 0) else x - Max(x, axis=(axis,), keepdim=True)
