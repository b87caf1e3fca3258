"""Losses of numbers and of distributions as layers."""

from __future__ import annotations

from minipd.nn import functional as F
from minipd.nn.loss.base import Loss

__all__ = ["GaussianNLLLoss", "KLDivLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss"]


class GaussianNLLLoss(Loss):
    """`functional.gaussian_nll_loss` as a layer."""

    function = staticmethod(F.gaussian_nll_loss)

    def __init__(self, full: bool = False, epsilon: float = 1e-6, reduction: str = "mean", name: str | None = None):
        super().__init__(name, full=full, epsilon=epsilon, reduction=reduction)


class KLDivLoss(Loss):
    """`functional.kl_div` as a layer."""

    function = staticmethod(F.kl_div)
    reductions = ("batchmean",)

    def __init__(self, reduction: str = "mean", log_target: bool = False):
        super().__init__(reduction=reduction, log_target=log_target)


class L1Loss(Loss):
    """`functional.l1_loss` as a layer."""

    function = staticmethod(F.l1_loss)

    def __init__(self, reduction: str = "mean", name: str | None = None):
        super().__init__(name, reduction=reduction)


class MSELoss(Loss):
    """`functional.mse_loss` as a layer."""

    function = staticmethod(F.mse_loss)

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction=reduction)


class PoissonNLLLoss(Loss):
    """`functional.poisson_nll_loss` as a layer."""

    function = staticmethod(F.poisson_nll_loss)

    def __init__(self, log_input: bool = True, full: bool = False, epsilon: float = 1e-8, reduction: str = "mean",
                 name: str | None = None):
        super().__init__(name, log_input=log_input, full=full, epsilon=epsilon, reduction=reduction)


class SmoothL1Loss(Loss):
    """`functional.smooth_l1_loss` as a layer."""

    function = staticmethod(F.smooth_l1_loss)

    def __init__(self, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True, name: str | None = None):
        super().__init__(name, reduction=reduction, delta=delta, is_huber=is_huber)
