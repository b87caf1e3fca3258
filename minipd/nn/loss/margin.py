"""Losses with a margin as layers."""

from __future__ import annotations

from collections.abc import Callable

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.loss.base import Loss

__all__ = ["CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss",
           "MultiMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss"]


class CosineEmbeddingLoss(Loss):
    """`functional.cosine_embedding_loss` as a layer."""

    function = staticmethod(F.cosine_embedding_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean", name: str | None = None):
        super().__init__(name, margin=margin, reduction=reduction)


class HingeEmbeddingLoss(Loss):
    """`functional.hinge_embedding_loss` as a layer."""

    function = staticmethod(F.hinge_embedding_loss)

    def __init__(self, margin: float = 1.0, reduction: str = "mean", name: str | None = None):
        super().__init__(name, margin=margin, reduction=reduction)


class MarginRankingLoss(Loss):
    """`functional.margin_ranking_loss` as a layer."""

    function = staticmethod(F.margin_ranking_loss)

    def __init__(self, margin: float = 0.0, reduction: str = "mean", name: str | None = None):
        super().__init__(name, margin=margin, reduction=reduction)


class MultiLabelMarginLoss(Loss):
    """`functional.multi_label_margin_loss` as a layer."""

    function = staticmethod(F.multi_label_margin_loss)

    def __init__(self, reduction: str = "mean", name: str | None = None):
        super().__init__(name, reduction=reduction)


class MultiMarginLoss(Loss):
    """`functional.multi_margin_loss` as a layer."""

    function = staticmethod(F.multi_margin_loss)

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean",
                 name: str | None = None):
        super().__init__(name, p=p, margin=margin, weight=weight, reduction=reduction)


class TripletMarginLoss(Loss):
    """`functional.triplet_margin_loss` as a layer."""

    function = staticmethod(F.triplet_margin_loss)

    def __init__(self, margin: float = 1.0, p: float = 2.0, epsilon: float = 1e-6, swap: bool = False,
                 reduction: str = "mean", name: str | None = None):
        super().__init__(name, margin=margin, p=p, epsilon=epsilon, swap=swap, reduction=reduction)


class TripletMarginWithDistanceLoss(Loss):
    """`functional.triplet_margin_with_distance_loss` as a layer."""

    function = staticmethod(F.triplet_margin_with_distance_loss)

    def __init__(self, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean", name: str | None = None):
        super().__init__(name, distance_function=distance_function, margin=margin, swap=swap, reduction=reduction)
