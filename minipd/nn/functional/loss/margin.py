"""Losses that ask for a distance: right answers beat wrong ones by a margin, and beyond it nothing is gained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.functional.activation import log_softmax
from minipd.nn.functional.distance import pairwise_distance
from minipd.nn.functional.loss.reduction import check_reduction, reduced, require_alike
from minipd.ops import reduce
from minipd.ops.activation import relu
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.elementary import rsqrt
from minipd.ops.embedding import embedding, take_along_axis
from minipd.ops.linalg import matmul
from minipd.ops.logic import equal, logical_and
from minipd.ops.math import minimum, square, where
from minipd.ops.shapes import agree

__all__ = ["cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_label_margin_loss",
           "multi_margin_loss", "npair_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"]


def margin_ranking_loss(input: Tensor, other: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean",
                        name: str | None = None) -> Tensor:
    """max(0, margin - label (input - other)): label 1 wants input the larger, -1 the smaller."""
    check_reduction("margin_ranking_loss", reduction)
    return reduced(relu((other - input) * cast(label, input.dtype) + margin), reduction)


def hinge_embedding_loss(input: Tensor, label: Tensor, margin: float = 1.0, reduction: str = "mean",
                         name: str | None = None) -> Tensor:
    """input where label is 1, max(0, margin - input) where it is -1; input is a distance."""
    check_reduction("hinge_embedding_loss", reduction)
    require_alike("hinge_embedding_loss", input=input, label=label)
    return reduced(where(label == 1, input, where(label == -1, relu(margin - input), 0.0 * input)), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, label: Tensor, margin: float = 0.0, reduction: str = "mean",
                          name: str | None = None) -> Tensor:
    """1 - cos where label is 1, max(0, cos - margin) where it is -1; cos of the angle between two rows.

    input1, input2 [N, M], label [N]; or [M] and [].
    """
    check_reduction("cosine_embedding_loss", reduction)
    require_alike("cosine_embedding_loss", input1=input1, input2=input2)
    if input1.ndim not in (1, 2) or label.ndim != input1.ndim - 1:
        raise ValueError("cosine_embedding_loss: expected inputs [N, M] and label [N], or [M] and [], got "
                         f"{', '.join(describe(t.payload) for t in (input1, input2, label))}")
    a, b = (reduce.sum(square(x), -1) + 1e-12 for x in (input1, input2))
    cos = reduce.sum(input1 * input2, -1) * rsqrt(a * b)
    return reduced(where(label == 1, 1.0 - cos, relu(cos - margin)), reduction)


def triplet_margin_loss(input: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        epsilon: float = 1e-6, swap: bool = False, reduction: str = "mean",
                        name: str | None = None) -> Tensor:
    """max(0, margin + |input - positive| - |input - negative|), with p-norms over the last dimension.

    swap: the distance of positive and negative stands for the last one where it is smaller.
    """
    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, epsilon)
    return _triplet("triplet_margin_loss", input, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(input: Tensor, positive: Tensor, negative: Tensor,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean",
                                      name: str | None = None) -> Tensor:
    """`triplet_margin_loss` with another distance; `pairwise_distance` unless given."""
    return _triplet("triplet_margin_with_distance_loss", input, positive, negative,
                    distance_function or pairwise_distance, margin, swap, reduction)


def _triplet(what: str, input: Tensor, positive: Tensor, negative: Tensor, distance: Callable[[Tensor, Tensor], Tensor],
             margin: float, swap: bool, reduction: str) -> Tensor:
    check_reduction(what, reduction)
    if margin < 0:
        raise ValueError(f"{what}: expected a margin of at least 0, got {margin}")
    require_alike(what, input=input, positive=positive, negative=negative)
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(relu(near - far + margin), reduction)


def _check_labels(what: str, input: Tensor, label: Tensor, kept: int) -> None:
    """input [N, C]; label, ints, of its first `kept` dimensions."""
    own, got = tuple(input.payload.shape), tuple(label.payload.shape)
    if not (input.ndim == 2 and len(got) == kept and label.payload.dtype in dtypes.INTS
            and all(agree(g, o, f"{what}: labels") for g, o in zip(got, own[:kept], strict=True))):
        raise ValueError(f"{what}: expected input [N, C] and int label {['[N]', '[N, C]'][kept - 1]}, got "
                         f"{describe(input.payload)} and {describe(label.payload)}")


def multi_margin_loss(input: Tensor, label: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      reduction: str = "mean", name: str | None = None) -> Tensor:
    """sum_j max(0, margin - input[label] + input[j])^p / C over the other classes j.   input [N, C], label [N]

    weight [C]: a factor for each label.
    """
    check_reduction("multi_margin_loss", reduction)
    _check_labels("multi_margin_loss", input, label, 1)
    own = label.unsqueeze(-1)
    short = relu(input - take_along_axis(input, own, 1) + margin)
    others = cast(arange(input.shape[1]).unsqueeze(0) != own, input.dtype)
    loss = reduce.mean(short ** float(p) * others, 1)
    if weight is not None:
        loss = loss * embedding(label, weight.unsqueeze(-1)).squeeze(-1)
    return reduced(loss, reduction)


def multi_label_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None) -> Tensor:
    """sum_ij max(0, 1 - input[j] + input[i]) / C over the classes j that are labels and those, i, that are not.

    input [N, C]; label int [N, C]: the labels of a row stand before its first -1.
    """
    check_reduction("multi_label_margin_loss", reduction)
    _check_labels("multi_label_margin_loss", input, label, 2)
    classes = input.shape[1]
    places = arange(classes)
    ended = cast(label < 0, "int64")
    before_end = matmul(cast(ended, input.dtype), cast(places.unsqueeze(-1) <= places, input.dtype)) == 0.0
    listed = where(before_end, label, 0)
    hits = logical_and(listed.unsqueeze(-1) == places, before_end.unsqueeze(-1))            # [N, C places, C classes]
    other: Any = 1.0 - reduce.max(cast(hits, input.dtype), 1)                                    # [N, C classes]
    short = input.unsqueeze(1) - take_along_axis(input, listed, 1).unsqueeze(-1) + 1.0      # [N, C places, C classes]
    wanted = cast(before_end, input.dtype).unsqueeze(-1) * other.unsqueeze(1)
    return reduced(reduce.sum(relu(short) * wanted, [1, 2]) / float(classes), reduction)


def npair_loss(anchor: Tensor, positive: Tensor, labels: Tensor, l2_reg: float = 0.002) -> Tensor:
    """Cross entropy of each anchor's similarities to all positives, plus l2_reg / 4 the mean squared lengths.

    anchor, positive [N, D], labels [N]: a positive counts where its label is the anchor's.  (Sohn 2016)
    """
    require_alike("npair_loss", anchor=anchor, positive=positive)
    same = cast(equal(labels.reshape([-1, 1]), labels.reshape([1, -1])), anchor.dtype)
    target = same / reduce.sum(same, 1, keepdim=True)
    lengths = reduce.mean(reduce.sum(square(anchor), 1)) + reduce.mean(reduce.sum(square(positive), 1))
    similarity: Any = matmul(anchor, positive, transpose_y=True)
    loss = -reduce.mean(reduce.sum(target * log_softmax(similarity, 1), 1))
    return loss + lengths * (0.25 * l2_reg)
