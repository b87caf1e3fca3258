"""Losses as layers."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.layer import Layer

__all__ = ["CrossEntropyLoss", "MSELoss"]


class CrossEntropyLoss(Layer):
    """`functional.cross_entropy` as a layer; see there for arguments and shapes.

    >>> from minipd.ops.creation import zeros, to_tensor
    >>> CrossEntropyLoss()(zeros([2, 4]), to_tensor([0, -100])).item()      # log 4; the second label is ignored
    1.3862943649291992
    """

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 soft_label: bool = False, axis: int = -1, use_softmax: bool = True, label_smoothing: float = 0.0,
                 name: str | None = None):
        super().__init__()
        F.check_reduction("CrossEntropyLoss", reduction)
        self.weight = weight
        self.options: dict[str, Any] = {
            "ignore_index": ignore_index, "reduction": reduction, "soft_label": soft_label, "axis": axis,
            "use_softmax": use_softmax, "label_smoothing": label_smoothing}

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(input, label, self.weight, **self.options)

    def extra_repr(self) -> str:
        return f"ignore_index={self.options['ignore_index']}, reduction={self.options['reduction']}"


class MSELoss(Layer):
    """`functional.mse_loss` as a layer."""

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        F.check_reduction("MSELoss", reduction)
        self.reduction = reduction

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.mse_loss(input, label, self.reduction)
