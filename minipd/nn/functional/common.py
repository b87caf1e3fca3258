"""Linear and bilinear maps, and look-ups."""

from __future__ import annotations

from typing import Any

from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops import embedding as lookup
from minipd.ops.cast import cast
from minipd.ops.creation import ones
from minipd.ops.linalg import matmul
from minipd.ops.logic import logical_and
from minipd.ops.math import where
from minipd.ops.matrices.norms import vector_norm
from minipd.ops.reduce import sum
from minipd.ops.shapes import agree, shapes_agree

__all__ = ["bilinear", "embedding", "label_smooth", "linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """x @ weight + bias.   x [..., in], weight [in, out], bias [out] -> [..., out]

    The result is of the product's dtype, also where `amp.auto_cast` makes that a lower one than the bias has.
    """
    out = matmul(x, weight)
    return out if bias is None else out + cast(bias, out.payload.dtype)


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None, name: str | None = None) -> Tensor:
    """out[n, k] = x1[n] weight[k] x2[n] + bias[k].   x1 [N, D1], x2 [N, D2], weight [K, D1, D2], bias [1, K] -> [N, K]

    One matrix product: x1 with all of weight, [N, K D2]; then a dot product with x2 for each k.

    >>> from minipd.ops.creation import ones
    >>> bilinear(ones([1, 2]), ones([1, 3]), ones([4, 2, 3])).tolist()
    [[6.0, 6.0, 6.0, 6.0]]
    """
    a, b, w = (tuple(t.payload.shape) for t in (x1, x2, weight))
    if not (len(a) == len(b) == 2 and len(w) == 3 and agree(a[0], b[0], "bilinear: the rows of x1 and x2")
            and shapes_agree((a[1], b[1]), w[1:], "bilinear: features of the inputs and of the weight")):
        raise ValueError("bilinear: expected x1 [N, D1], x2 [N, D2] and weight [K, D1, D2], got "
                         f"{', '.join(describe(t.payload) for t in (x1, x2, weight))}")
    products = matmul(x1, weight.transpose([1, 0, 2]).reshape([w[1], w[0] * w[2]])).reshape([a[0], w[0], w[2]])
    out = sum(products * x2.unsqueeze(1), -1)
    return out if bias is None else out + bias


@whole
def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, sparse: bool = False, scale_grad_by_freq: bool = False,
              name: str | None = None) -> Tensor:
    """Rows of `weight` by number.   x int [...], weight [rows, width] -> [..., width]

    padding_idx: this number gives zeros and no gradient.
    max_norm: rows that are looked up and whose norm_type-norm is larger are first scaled to it, in `weight` itself.
    scale_grad_by_freq: a row's gradient is divided by how often it is looked up here.
    sparse: without effect, gradients are dense.
    Raises: ValueError for a number outside 0 .. rows-1, and for a padding_idx that is no row.
    """
    rows = weight.payload.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: expected a padding_idx in {-rows} .. {rows - 1}, got {padding_idx}")
    if max_norm is not None:
        _limit_rows(x, weight, max_norm, norm_type)
    out = lookup.embedding(x, weight, padding_idx)
    if scale_grad_by_freq and not out.stop_gradient:
        factor: Any = 1.0 / lookup.embedding(x, _how_often(x, weight))
        out.register_hook(lambda g: g * cast(factor, g.dtype))
    return out


def _how_often(x: Tensor, weight: Tensor) -> Tensor:
    """How often x looks each row up, [rows, 1] in weight's dtype."""
    rows = weight.payload.shape[0]
    with using(grad=False):
        each = ones([*x.payload.shape, 1], weight.dtype)
        return lookup.EmbeddingGrad(x, each, ones([rows, 1], weight.dtype))


def _limit_rows(x: Tensor, weight: Tensor, max_norm: float, norm_type: float) -> None:
    with using(grad=False):
        norm = vector_norm(weight, norm_type, 1, keepdim=True)
        large = logical_and(_how_often(x, weight) > 0.0, norm > max_norm)
        weight.set_value(weight * where(large, max_norm / (norm + 1e-7), 1.0))


def label_smooth(label: Tensor, prior_dist: Tensor | None = None, epsilon: float = 0.1,
                 name: str | None = None) -> Tensor:
    """(1 - epsilon) label + epsilon prior.   label [..., C], distributions; prior_dist [1, C], even unless given.

    Raises: ValueError for an epsilon outside [0, 1].

    >>> from minipd.ops.creation import to_tensor
    >>> label_smooth(to_tensor([[1.0, 0.0]]), epsilon=0.5).tolist()
    [[0.75, 0.25]]
    """
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"label_smooth: expected an epsilon in [0, 1], got {epsilon}")
    if label.ndim == 0:
        raise ValueError(f"label_smooth: expected distributions [..., C], got {describe(label.payload)}")
    prior: Any = 1.0 / max(label.shape[-1], 1) if prior_dist is None else prior_dist
    return label * (1.0 - epsilon) + prior * epsilon
