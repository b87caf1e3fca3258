"""Losses of yes or no: one probability, or one logit, per question."""

from __future__ import annotations

from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.nn.functional.loss.reduction import check_reduction, reduced, require_alike
from minipd.ops import reduce
from minipd.ops.activation import log_sigmoid, sigmoid
from minipd.ops.cast import cast
from minipd.ops.elementary import log
from minipd.ops.loss import BceLoss, SigmoidCrossEntropyWithLogits

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "log_loss", "multi_label_soft_margin_loss",
           "sigmoid_focal_loss", "soft_margin_loss"]


@whole
def binary_cross_entropy(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                         name: str | None = None) -> Tensor:
    """-weight (label log(input) + (1 - label) log(1 - input)); input in [0, 1], label in [0, 1], of one shape.

    A logarithm is at least -100, so that a certain and wrong answer costs 100, not infinity.

    >>> from minipd.ops.creation import to_tensor
    >>> binary_cross_entropy(to_tensor([0.0, 1.0]), to_tensor([1.0, 1.0]), reduction="none").tolist()
    [100.0, 0.0]
    """
    check_reduction("binary_cross_entropy", reduction)
    require_alike("binary_cross_entropy", input=input, label=label)
    loss = BceLoss(input, cast(label, input.dtype))
    return reduced(loss if weight is None else loss * weight, reduction)


@whole
def binary_cross_entropy_with_logits(logit: Tensor, label: Tensor, weight: Tensor | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None,
                                     name: str | None = None) -> Tensor:
    """`binary_cross_entropy` of sigmoid(logit), which no logit is too large for.

    pos_weight: a factor on the loss of yes, -label log p; it broadcasts to logit, one number per class.

    >>> from minipd.ops.creation import to_tensor
    >>> binary_cross_entropy_with_logits(to_tensor([1e4, -1e4]), to_tensor([0.0, 0.0]), reduction="none").tolist()
    [10000.0, 0.0]
    """
    check_reduction("binary_cross_entropy_with_logits", reduction)
    require_alike("binary_cross_entropy_with_logits", logit=logit, label=label)
    label = cast(label, logit.dtype)
    loss = SigmoidCrossEntropyWithLogits(logit, label)
    if pos_weight is not None:
        loss = loss + (1.0 - pos_weight) * label * log_sigmoid(logit)
    return reduced(loss if weight is None else loss * weight, reduction)


def sigmoid_focal_loss(logit: Tensor, label: Tensor, normalizer: Tensor | None = None, alpha: float = 0.25,
                       gamma: float = 2.0, reduction: str = "sum", name: str | None = None) -> Tensor:
    """Binary cross entropy of logits in which easy answers count little.   (Lin et al. 2017)

    = a (1 - p)^gamma -log p, where p is the probability of the right answer, and a is alpha for label 1 and 1 - alpha
    for label 0.  normalizer: a number, [1] or 0-D, that the loss is divided by.
    """
    check_reduction("sigmoid_focal_loss", reduction)
    require_alike("sigmoid_focal_loss", logit=logit, label=label)
    label = cast(label, logit.dtype)
    yes = sigmoid(logit)
    wrong = yes * (1.0 - label) + (1.0 - yes) * label                   # 1 - p
    factor = label * alpha + (1.0 - label) * (1.0 - alpha)
    loss = SigmoidCrossEntropyWithLogits(logit, label) * factor * wrong ** gamma
    return reduced(loss if normalizer is None else loss / normalizer, reduction)


def log_loss(input: Tensor, label: Tensor, epsilon: float = 1e-4, name: str | None = None) -> Tensor:
    """-label log(input + epsilon) - (1 - label) log(1 - input + epsilon), for each element."""
    return -(label * log(input + epsilon)) - (1.0 - label) * log(1.0 - input + epsilon)


def soft_margin_loss(input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None) -> Tensor:
    """log(1 + e^(-label input)); labels 1 and -1.

    >>> from minipd.ops.creation import to_tensor
    >>> soft_margin_loss(to_tensor([1e4, 1e4]), to_tensor([1, -1]), reduction="none").tolist()
    [0.0, 10000.0]
    """
    check_reduction("soft_margin_loss", reduction)
    require_alike("soft_margin_loss", input=input, label=label)
    return reduced(0.0 - log_sigmoid(cast(label, input.dtype) * input), reduction)


def multi_label_soft_margin_loss(input: Tensor, label: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                 name: str | None = None) -> Tensor:
    """Binary cross entropy of logits, its mean over the last dimension; weight: a factor for each class."""
    check_reduction("multi_label_soft_margin_loss", reduction)
    require_alike("multi_label_soft_margin_loss", input=input, label=label)
    loss = SigmoidCrossEntropyWithLogits(input, cast(label, input.dtype))
    return reduced(reduce.mean(loss if weight is None else loss * weight, -1), reduction)
