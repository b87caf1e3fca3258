"""How far apart: norms of vectors, and what is made of them."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops import reduce
from minipd.ops.cast import cast
from minipd.ops.elementary import sqrt
from minipd.ops.math import abs, maximum, square, where

__all__ = ["cosine_similarity", "pairwise_distance"]


def vector_norm(x: Tensor, p: float, axis: int, keepdim: bool = False) -> Tensor:
    """(sum |x|^p)^(1/p) over `axis`; the largest |x| for p = inf, the smallest for -inf, their number but 0 for p = 0.

    The gradient at a vector of zeros, where the norm has a corner, is 0, as in Paddle.
    """
    if p == 0:
        return reduce.sum(cast(x != 0.0, x.dtype), axis, keepdim=keepdim)
    if math.isinf(p):
        return (reduce.max if p > 0 else reduce.min)(abs(x), axis, keepdim)
    total = reduce.sum(square(x) if p == 2 else abs(x) ** p, axis, keepdim=keepdim)
    if p == 1:
        return total
    # the power is taken of what is not 0, so that its slope, infinite at 0, never meets the gradient's 0 there
    empty = total == 0.0
    inside = where(empty, 1.0, total)
    return where(empty, 0.0, sqrt(inside) if p == 2 else inside ** (1.0 / p))


def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False,
                      name: str | None = None) -> Tensor:
    """The p-norm of x - y + epsilon over the last dimension; x and y [N, D] or [D], broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> pairwise_distance(to_tensor([[0.0, 4.0]]), to_tensor([[3.0, 0.0]]), epsilon=0.0).tolist()
    [5.0]
    """
    return vector_norm(x - y + epsilon, p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / max(|x1| |x2|, eps) over `axis`; x1 and x2 are broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> cosine_similarity(to_tensor([[1.0, 0.0]]), to_tensor([[3.0, 4.0]])).tolist()
    [0.6000000238418579]
    """
    def dot(a: Any, b: Any) -> Tensor:
        return reduce.sum(a * b, axis)

    lengths = vector_norm(x1, 2, axis) * vector_norm(x2, 2, axis)
    return dot(x1, x2) / maximum(lengths, eps)
