"""Losses of numbers and of distributions: how far a prediction is from what was measured."""

from __future__ import annotations

import math

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.nn.functional.loss.reduction import check_reduction, reduced, require_alike
from minipd.ops import reduce
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.math import abs, maximum, square, where

__all__ = ["gaussian_nll_loss", "kl_div", "l1_loss", "mse_loss", "poisson_nll_loss", "smooth_l1_loss",
           "square_error_cost"]


def mse_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None) -> Tensor:
    """(input - label)^2, broadcast; its mean, its sum, or itself.

    >>> from minipd.ops.creation import to_tensor
    >>> mse_loss(to_tensor([1.0, 2.0]), to_tensor([1.0, 4.0])).item()
    2.0
    """
    check_reduction("mse_loss", reduction)
    return reduced(square(input - label), reduction)


def square_error_cost(input: Tensor, label: Tensor) -> Tensor:
    """(input - label)^2."""
    return square(input - label)


@whole
def l1_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None) -> Tensor:
    """|input - label|, broadcast."""
    check_reduction("l1_loss", reduction)
    return reduced(abs(input - label), reduction)


@whole
def smooth_l1_loss(input: Tensor, label: Tensor, reduction: str = "mean", delta: float = 1.0, is_huber: bool = True,
                   name: str | None = None) -> Tensor:
    """Huber's loss: d^2 / 2 for |d| = |input - label| below delta, else delta |d| - delta^2 / 2.

    is_huber=False: the same divided by delta, which has slope 1 far out.
    """
    check_reduction("smooth_l1_loss", reduction)
    d = input - label
    near = where(d > delta, delta, where(d < -delta, -delta, d))
    loss = near * (d - near * 0.5)              # no square of a large d, whose gradient 0 times infinity would spoil
    return reduced(loss if is_huber else loss / delta, reduction)


@whole
def kl_div(input: Tensor, label: Tensor, reduction: str = "mean", log_target: bool = False,
           name: str | None = None) -> Tensor:
    """label (log label - input): the divergence of the distribution e^input from `label`.

    input: log-probabilities.  label: probabilities, of which 0 costs nothing; log_target: their logarithms.
    reduction: also "batchmean", the sum over the size of the first dimension, which is the divergence.

    >>> from minipd.ops.creation import to_tensor
    >>> kl_div(to_tensor([0.0, -1e4]), to_tensor([1.0, 0.0]), reduction="none").tolist()
    [0.0, 0.0]
    """
    check_reduction("kl_div", reduction, "batchmean")
    if log_target:
        loss = exp(label) * (label - input)
    else:
        some = label > 0.0
        loss = where(some, label * (log(where(some, label, 1.0)) - input), 0.0)
    if reduction == "batchmean":
        return reduce.sum(loss) / (input.shape[0] if input.ndim else 1)
    return reduced(loss, reduction)


def poisson_nll_loss(input: Tensor, label: Tensor, log_input: bool = True, full: bool = False, epsilon: float = 1e-8,
                     reduction: str = "mean", name: str | None = None) -> Tensor:
    """-log of the probability of `label` under a Poisson distribution, without the term log(label!).

    input: the logarithm of its rate; log_input=False: the rate itself, to which epsilon is added in the logarithm.
    full: Stirling's approximation of log(label!) is added where label > 1.
    """
    check_reduction("poisson_nll_loss", reduction)
    if epsilon <= 0:
        raise ValueError(f"poisson_nll_loss: expected a positive epsilon, got {epsilon}")
    loss = exp(input) - label * input if log_input else input - label * log(input + epsilon)
    if full:
        many = label > 1.0
        n = where(many, label, 1.0)
        loss = loss + where(many, n * log(n) - n + log(n * (2.0 * math.pi)) * 0.5, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(input: Tensor, label: Tensor, variance: Tensor, full: bool = False, epsilon: float = 1e-6,
                      reduction: str = "mean", name: str | None = None) -> Tensor:
    """-log of the density of `label` under a normal distribution: (log v + (input - label)^2 / v) / 2, v the variance.

    variance: of input's shape, or without its last dimension, or with size 1 there; it is at least epsilon.
    full: the constant log(2 pi) / 2 is added.
    Raises: ValueError for a variance of another shape.
    """
    check_reduction("gaussian_nll_loss", reduction)
    require_alike("gaussian_nll_loss", input=input, label=label)
    own, got = tuple(input.payload.shape), tuple(variance.payload.shape)
    if got != own:
        if got == own[:-1]:
            variance = variance.unsqueeze(-1)
        elif got != (*own[:-1], 1):
            raise ValueError(f"gaussian_nll_loss: expected a variance of the shape of input {describe(input.payload)}, "
                             f"or of size 1 or without its last dimension, got {describe(variance.payload)}")
    v = maximum(cast(variance, input.dtype), epsilon)
    loss = (log(v) + square(input - label) / v) * 0.5
    return reduced(loss + 0.5 * math.log(2.0 * math.pi) if full else loss, reduction)
