"""Losses of yes or no as layers."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.loss.base import Loss

__all__ = ["BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss", "SoftMarginLoss"]


class BCELoss(Loss):
    """`functional.binary_cross_entropy` as a layer."""

    function = staticmethod(F.binary_cross_entropy)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None):
        super().__init__(name, weight=weight, reduction=reduction)


class BCEWithLogitsLoss(Loss):
    """`functional.binary_cross_entropy_with_logits` as a layer."""

    function = staticmethod(F.binary_cross_entropy_with_logits)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
                 name: str | None = None):
        super().__init__(name, weight=weight, reduction=reduction, pos_weight=pos_weight)


class MultiLabelSoftMarginLoss(Loss):
    """`functional.multi_label_soft_margin_loss` as a layer."""

    function = staticmethod(F.multi_label_soft_margin_loss)

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None):
        super().__init__(name, weight=weight, reduction=reduction)


class SoftMarginLoss(Loss):
    """`functional.soft_margin_loss` as a layer."""

    function = staticmethod(F.soft_margin_loss)

    def __init__(self, reduction: str = "mean", name: str | None = None):
        super().__init__(name, reduction=reduction)
