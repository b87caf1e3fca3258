"""Losses of label sequences whose places in the input are not known: every way to place them counts."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn.functional.loss.reduction import check_reduction, reduced
from minipd.ops import reduce
from minipd.ops.cast import cast
from minipd.ops.ctc import Warpctc
from minipd.ops.math import maximum, where
from minipd.ops.rnnt import Warprnnt

__all__ = ["ctc_loss", "rnnt_loss"]


def ctc_loss(log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: int = 0,
             reduction: str = "mean", norm_by_times: bool = False, zero_infinity: bool = False) -> Tensor:
    """Connectionist temporal classification: see `minipd.ops.ctc`.

    Args:
        log_probs: [T, B, C]; in spite of the name logits, of which the softmax is taken here.
        labels: int [B, L], padded with anything; input_lengths, label_lengths: int [B].
        blank: the class that says nothing.
        reduction: "mean" divides each loss by the length of its labels (at least 1) before the mean over the batch.
        norm_by_times: each *gradient* is divided by the sequence's length.
        zero_infinity: 0 instead of infinity where there are more labels than time.
    Raises: ValueError for shapes that do not fit, lengths beyond them, labels that are no class; NotImplementedError
        for second derivatives.

    >>> from minipd.ops.creation import to_tensor, zeros
    >>> loss = ctc_loss(zeros([1, 1, 4]), to_tensor([[2]]), to_tensor([1]), to_tensor([1]), reduction="none")
    >>> [round(x, 6) for x in loss.tolist()]         # one time, one label: -log 1/4
    [1.386294]
    """
    check_reduction("ctc_loss", reduction)
    loss: Any = Warpctc(log_probs, labels, input_lengths, label_lengths, blank=blank, norm_by_times=norm_by_times)
    if zero_infinity:
        loss = where(loss == float("inf"), 0.0, loss)
    if reduction == "mean":
        return reduce.mean(loss / maximum(cast(label_lengths, loss.dtype), 1.0))
    return reduced(loss, reduction)


def rnnt_loss(input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor, blank: int = 0,
              fastemit_lambda: float = 0.001, reduction: str = "mean", name: str | None = None) -> Tensor:
    """The transducer's loss: see `minipd.ops.rnnt`.

    Args:
        input: [B, T, U, C], log-probabilities, which are taken as they are (as Paddle does on the CPU).
        label: int [B, U - 1]; input_lengths, label_lengths: int [B].
        fastemit_lambda: how much more the gradient of writing a label counts.
        reduction: "mean" is the sum over the size of the batch.
    Raises: ValueError for shapes that do not fit, lengths beyond them, labels that are no class; NotImplementedError
        for second derivatives.
    """
    check_reduction("rnnt_loss", reduction)
    loss = Warprnnt(input, label, input_lengths, label_lengths, blank=blank, fastemit_lambda=float(fastemit_lambda))
    return reduced(loss, reduction)
