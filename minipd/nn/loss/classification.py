"""Losses of one class out of many as layers."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.loss.base import Loss

__all__ = ["CrossEntropyLoss", "NLLLoss"]


class CrossEntropyLoss(Loss):
    """`functional.cross_entropy` as a layer; see there for arguments and shapes.

    >>> from minipd.ops.creation import zeros, to_tensor
    >>> CrossEntropyLoss()(zeros([2, 4]), to_tensor([0, -100])).item()      # log 4; the second label is ignored
    1.3862943649291992
    """

    function = staticmethod(F.cross_entropy)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 soft_label: bool = False, axis: int = -1, use_softmax: bool = True, label_smoothing: float = 0.0,
                 name: str | None = None):
        super().__init__(name, weight=weight, ignore_index=ignore_index, reduction=reduction, soft_label=soft_label,
                         axis=axis, use_softmax=use_softmax, label_smoothing=label_smoothing)


class NLLLoss(Loss):
    """`functional.nll_loss` as a layer."""

    function = staticmethod(F.nll_loss)

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 name: str | None = None):
        super().__init__(name, weight=weight, ignore_index=ignore_index, reduction=reduction)
