"""Losses of sequences as layers."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.loss.base import Loss

__all__ = ["CTCLoss", "RNNTLoss"]


class CTCLoss(Loss):
    """`functional.ctc_loss` as a layer."""

    function = staticmethod(F.ctc_loss)

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(blank=blank, reduction=reduction, zero_infinity=zero_infinity)

    def forward(self, log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor,
                norm_by_times: bool = False) -> Tensor:
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times,
                          self.zero_infinity)


class RNNTLoss(Loss):
    """`functional.rnnt_loss` as a layer."""

    function = staticmethod(F.rnnt_loss)

    def __init__(self, blank: int = 0, fastemit_lambda: float = 0.001, reduction: str = "mean",
                 name: str | None = None):
        super().__init__(name, blank=blank, fastemit_lambda=fastemit_lambda, reduction=reduction)
