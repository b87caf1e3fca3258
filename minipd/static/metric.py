"""Metrics as operators of a program: `paddle.static.accuracy` and `auc`."""

from __future__ import annotations

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.metric import accuracy as _accuracy
from minipd.ops.cast import cast
from minipd.ops.creation import full_like, zeros
from minipd.ops.math import where
from minipd.ops.reorder import flip
from minipd.ops.scan import cumsum
from minipd.ops.scatter import scatter_nd_add

__all__ = ["accuracy", "auc"]


def accuracy(input: Tensor, label: Tensor, k: int = 1, correct: Tensor | None = None,
             total: Tensor | None = None) -> Tensor:
    """How often the right class is among the k most probable: see `paddle.metric.accuracy`."""
    return _accuracy(input, label, k, correct, total)


def auc(input: Tensor, label: Tensor, curve: str = "ROC", num_thresholds: int = 4095, topk: int = 1,
        slide_steps: int = 1, ins_tag_weight: Tensor | None = None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The area under the ROC curve of a batch, float64 and 0-D.

    input: probabilities of the two classes, [n, 2].  label: int [n, 1] or [n], 1 for the second class.
    ins_tag_weight: [n] or [n, 1], how much each example counts.
    -> (area, area, the batch's counts in num_thresholds + 1 bins of probability: those of label 1, then of 0)
    In Paddle the first area is of all batches so far.  A program here keeps nothing between runs: add up the counts, or
    use `paddle.metric.Auc`.
    Raises: ValueError for other shapes, and for what there is not: other curves, topk or slide_steps other than 1.

    >>> from minipd.ops.creation import to_tensor
    >>> auc(to_tensor([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]), to_tensor([1, 0, 0]))[0].item()
    0.5
    """
    if curve != "ROC" or topk != 1 or slide_steps != 1:
        raise ValueError(f"auc: expected curve='ROC', topk=1 and slide_steps=1, got {curve!r}, {topk} and "
                         f"{slide_steps}; see paddle.metric.Auc for the precision-recall curve")
    if input.ndim != 2 or label.ndim not in (1, 2):
        raise ValueError(f"auc: expected probabilities [n, 2] and labels [n, 1] or [n], got {describe(input)} and "
                         f"{describe(label)}")
    bins = cast(input[:, -1] * float(num_thresholds), "int64").unsqueeze(-1)
    counts = []
    for wanted in (True, False):
        counted = cast((label.flatten() == 1) == wanted, "float64")
        if ins_tag_weight is not None:
            counted = counted * cast(ins_tag_weight.flatten(), "float64")
        counts.append(scatter_nd_add(zeros([num_thresholds + 1], "float64"), bins, counted))
    area = _area(*counts)
    return area, area, counts


def _area(positive: Tensor, negative: Tensor) -> Tensor:
    """The polygon under true over false positives, from the highest threshold down; 0 if a class is missing."""
    tp, fp_step = cumsum(flip(positive, [0])), flip(negative, [0])
    area = ((tp - flip(positive, [0]) * 0.5) * fp_step).sum()
    whole = positive.sum() * negative.sum()
    empty = whole == 0.0
    return where(empty, full_like(whole, 0.0), area / where(empty, full_like(whole, 1.0), whole))
