"""How far apart two vectors are."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops import reduce
from minipd.ops.math import maximum
from minipd.ops.matrices.norms import vector_norm

__all__ = ["cosine_similarity", "pairwise_distance"]


def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False,
                      name: str | None = None) -> Tensor:
    """The p-norm of x - y + epsilon over the last dimension; x and y [N, D] or [D], broadcast.

    >>> from minipd.ops.creation import to_tensor
    >>> pairwise_distance(to_tensor([[0.0, 4.0]]), to_tensor([[3.0, 0.0]]), epsilon=0.0).tolist()
    [5.0]
    """
    return vector_norm(x - y + epsilon, p, -1, keepdim)


@whole
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
