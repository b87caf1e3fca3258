"""Losses of one class out of many.

The mean of a classification loss divides by the number of labels that count (or by their weights), over the global
batch: under data parallelism, numerator and denominator are each summed over the ranks before they meet, so a rank with
few valid tokens weighs little.  A batch in which every label is ignored gives 0, and zero gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.nn.functional.activation import log_softmax
from minipd.nn.functional.loss.reduction import check_reduction, reduced
from minipd.ops import reduce
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.elementary import log
from minipd.ops.embedding import embedding, take_along_axis
from minipd.ops.loss import cross_entropy_with_softmax
from minipd.ops.shapes import normalize_axis, require_floating, shapes_agree

__all__ = ["cross_entropy", "dice_loss", "nll_loss", "softmax_with_cross_entropy"]


@whole
def cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", soft_label: bool = False, axis: int = -1, use_softmax: bool = True,
                  label_smoothing: float = 0.0, name: str | None = None) -> Tensor:
    """Paddle's `cross_entropy`: -log softmax(input)[label] over the classes along `axis`.

    Args:
        input: logits [..., C, ...]; probabilities with use_softmax=False.
        label: ints, of input's shape without `axis` or with size 1 there; with soft_label, a distribution over the
            classes, of input's shape.  (So it is with label_smoothing, if it has floats of input's shape.)
        weight: a factor per class, [C]; the mean then divides by the sum of the factors.
        ignore_index: labels that do not count (hard labels only).
        reduction: "mean", "sum", or "none", which has the labels' shape.
        label_smoothing: this much of each label is spread evenly over all classes.

    Low-precision logits are taken in float32; the result is rounded back, but not under `amp.auto_cast`.  (Where
    ignore_index is negative, Paddle's mean divides by all labels, the ignored ones too; here they never count.)
    Raises: ValueError for labels that do not fit the logits, or that name no class; TypeError for other dtypes.

    >>> from minipd.ops.creation import to_tensor
    >>> logits = to_tensor([[0.0, 1.0, 2.0, 3.0]])
    >>> round(cross_entropy(logits, to_tensor([2])).item(), 5)
    1.44019
    >>> round(cross_entropy(logits, to_tensor([2]), label_smoothing=0.1).item(), 5)
    1.49019
    >>> cross_entropy(logits, to_tensor([-100])).item()
    0.0
    """
    check_reduction("cross_entropy", reduction)
    require_floating("cross_entropy", input.payload)
    if input.payload.dtype in dtypes.LOW_PRECISION:
        wide = cross_entropy(cast(input, "float32"), label, weight, ignore_index, reduction, soft_label, axis,
                             use_softmax, label_smoothing)
        return wide if current().amp is not None else cast(wide, input.dtype)
    axis = normalize_axis("cross_entropy", axis, input.ndim)
    if weight is not None:
        if weight.shape != [input.shape[axis]]:
            raise ValueError(f"cross_entropy: expected weight of shape [{input.shape[axis]}], one per class, got "
                             f"{list(weight.shape)}")
        weight = cast(weight, input.dtype)
    if soft_label or label_smoothing > 0.0 and _is_distribution(label, input):
        loss, counted = _soft(input, label, weight, axis, use_softmax, label_smoothing)
        return reduced(loss, reduction, counted)
    _check_labels(input, label, axis)
    flat = label.ndim == input.ndim - 1
    label = label.unsqueeze(axis) if flat else label
    loss, counted = _hard(input, label, weight, axis, ignore_index, use_softmax, label_smoothing, reduction)
    return reduced(loss.squeeze(axis) if flat and reduction == "none" else loss, reduction, counted)


def _hard(z: Tensor, label: Tensor, weight: Tensor | None, axis: int, ignore_index: int, use_softmax: bool,
          smoothing: float, reduction: str) -> tuple[Tensor, Tensor | None]:
    """(loss, what it counts), both with size 1 along `axis`.

    With smoothing e, the loss is lse - (1 - e) z[label] - e mean(z): the plain one plus e (z[label] - mean(z)).
    """
    valid, safe = _counted(label, ignore_index, z.dtype)
    if use_softmax:
        _, loss = cross_entropy_with_softmax(z, label, ignore_index, axis)
    else:
        _check_classes("cross_entropy", label, z.shape[axis], ignore_index)
        z = log(z)
        loss = -take_along_axis(z, safe, axis) * valid
    if smoothing > 0.0:
        loss = loss + (take_along_axis(z, safe, axis) - reduce.mean(z, axis, keepdim=True)) * (valid * smoothing)
    if weight is None:
        return loss, valid if reduction == "mean" else None
    factor = embedding(safe, weight.unsqueeze(-1)).squeeze(-1)
    if smoothing > 0.0:
        factor = factor * (1.0 - smoothing) + reduce.mean(weight) * smoothing
    factor = factor * valid
    return loss * factor, factor


def _counted(label: Tensor, ignore_index: int, dtype: Any) -> tuple[Tensor, Tensor]:
    """(1 for labels that count, else 0; the labels, with 0 for those that do not: a class to look up)."""
    valid = cast(label != ignore_index, dtype)
    return valid, label * cast(valid, label.dtype)


def _soft(z: Tensor, label: Tensor, weight: Tensor | None, axis: int, use_softmax: bool,
          smoothing: float) -> tuple[Tensor, Tensor | None]:
    """(loss, what it counts; None: every position once), both with size 1 along `axis`."""
    if not _is_distribution(label, z):
        raise ValueError(f"cross_entropy: expected soft labels, floats of the shape of {describe(z.payload)}, got "
                         f"{describe(label.payload)}")
    label = cast(label, z.dtype)
    if smoothing > 0.0:
        label = label * (1.0 - smoothing) + smoothing / z.shape[axis]
    loss = -reduce.sum((log_softmax(z, axis) if use_softmax else log(z)) * label, axis, keepdim=True)
    if weight is None:
        return loss, None
    factor = reduce.sum(label * weight.reshape([-1] + [1] * (z.ndim - 1 - axis)), axis, keepdim=True)
    return loss * factor, factor


def _is_distribution(label: Tensor, z: Tensor) -> bool:
    return label.shape == z.shape and label.payload.dtype in dtypes.FLOATS


def _check_labels(input: Tensor, label: Tensor, axis: int, what: str = "cross_entropy") -> None:
    own, got = tuple(input.payload.shape), tuple(label.payload.shape)
    flat, kept = own[:axis] + own[axis + 1:], (*own[:axis], 1, *own[axis + 1:])
    if label.payload.dtype not in dtypes.INTS or not shapes_agree(
            got, flat if len(got) < len(own) else kept, f"labels of {what}"):
        raise ValueError(f"{what}: expected int labels of shape {list(flat)} or {list(kept)} for logits "
                         f"{describe(input.payload)}, got {describe(label.payload)}")


def _check_classes(what: str, label: Tensor, classes: int, ignore_index: int) -> None:
    """The loss's own operator checks this; a plain look-up does not.  (Traced labels have no values yet.)"""
    values = label.payload
    if type(values) is np.ndarray:
        bad = values[(values != ignore_index) & ((values < 0) | (values >= classes))]
        if bad.size:
            raise ValueError(f"{what}: expected labels in 0 .. {classes - 1} or ignore_index={ignore_index}, "
                             f"got {bad[0]}")


@whole
def softmax_with_cross_entropy(logits: Tensor, label: Tensor, soft_label: bool = False, ignore_index: int = -100,
                               numeric_stable_mode: bool = True, return_softmax: bool = False, axis: int = -1) -> Any:
    """The loss of every position, with size 1 along `axis`; and the softmax, with return_softmax."""
    axis = normalize_axis("softmax_with_cross_entropy", axis, logits.ndim)
    if soft_label:
        loss, _ = _soft(logits, label, None, axis, True, 0.0)
        return (loss, log_softmax(logits, axis).exp()) if return_softmax else loss
    _check_labels(logits, label, axis)
    softmax, loss = cross_entropy_with_softmax(logits, label, ignore_index, axis)
    return (loss, softmax) if return_softmax else loss


@whole
def nll_loss(input: Tensor, label: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean", name: str | None = None) -> Tensor:
    """-input[label]: the loss of log-probabilities.   input [N, C, ...], label int [N, ...]

    weight: a factor per class, [C]; the mean then divides by the sum of the factors.
    ignore_index: labels that do not count.
    Raises: ValueError for labels that do not fit the input, or that name no class.

    >>> from minipd.ops.creation import to_tensor
    >>> nll_loss(to_tensor([[-1.0, -2.0], [-3.0, -4.0]]), to_tensor([1, 0]), reduction="none").tolist()
    [2.0, 3.0]
    """
    check_reduction("nll_loss", reduction)
    if input.ndim < 2:
        raise ValueError(f"nll_loss: expected an input [N, C, ...], got {describe(input.payload)}")
    _check_labels(input, label, 1, "nll_loss")
    label = label.unsqueeze(1) if label.ndim == input.ndim - 1 else label
    classes = input.shape[1]
    _check_classes("nll_loss", label, classes, ignore_index)
    valid, safe = _counted(label, ignore_index, input.dtype)
    if weight is not None:
        if weight.shape != [classes]:
            raise ValueError(f"nll_loss: expected weight of shape [{classes}], one per class, got {list(weight.shape)}")
        valid = valid * embedding(safe, weight.unsqueeze(-1)).squeeze(-1)
    return reduced((-take_along_axis(input, safe, 1) * valid).squeeze(1), reduction, valid)


def dice_loss(input: Tensor, label: Tensor, epsilon: float = 1e-5, name: str | None = None) -> Tensor:
    """1 - 2 |A B| / (|A| + |B|), the mean over the batch, for soft sets A (input) and B (label).

    input [N, ..., C]: probabilities; label int [N, ..., 1].  epsilon is added to the divisor.   (Milletari et al. 2016)
    """
    _check_labels(input, label, input.ndim - 1, "dice_loss")
    one_hot = cast(label == arange(input.shape[-1]), input.dtype)
    own = list(range(1, input.ndim))
    both = reduce.sum(input * one_hot, own)
    either = reduce.sum(input, own) + reduce.sum(one_hot, own) + epsilon
    return reduce.mean((either - both * 2.0) / either)
