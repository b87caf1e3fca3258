"""Rules of the losses of yes or no."""

from __future__ import annotations

from minipd.decomposition.table import decompose_rule
from minipd.framework.tensor import Tensor
from minipd.ops.elementary import exp, log, log1p
from minipd.ops.math import abs, maximum

__all__: list[str] = []


@decompose_rule("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(x: Tensor, y: Tensor) -> Tensor:
    """max(x, 0) - x y + log(1 + e^-|x|): no term overflows."""
    return maximum(x, 0.0) - x * y + log1p(exp(-abs(x)))


@decompose_rule("bce_loss")
def bce_loss(x: Tensor, y: Tensor) -> Tensor:
    """-y log x - (1 - y) log(1 - x), where a logarithm is at least -100."""
    return 0.0 - (y * maximum(log(x), -100.0) + (1.0 - y) * maximum(log1p(-x), -100.0))
