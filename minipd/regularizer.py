"""Regularizers: weight decay as a term of the gradient (Paddle's `paddle.regularizer`)."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.logic import greater_than, less_than
from minipd.ops.math import add_n
from minipd.ops.scaling import scale

__all__ = ["L1Decay", "L2Decay"]


class L2Decay:
    """Adds coeff * param to the gradient: the gradient of coeff / 2 * sum(param^2)."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def __call__(self, param: Tensor, grad: Tensor) -> Tensor:
        """The gradient of the regularized loss."""
        return add_n([grad, scale(param, self.coeff)]) if self.coeff else grad

    def __repr__(self) -> str:
        return f"L2Decay, coeff={self.coeff:f}"


class L1Decay:
    """Adds coeff * sign(param) to the gradient: the gradient of coeff * sum(|param|)."""

    def __init__(self, coeff: float = 0.0):
        self.coeff = float(coeff)

    def __call__(self, param: Tensor, grad: Tensor) -> Tensor:
        """The gradient of the regularized loss."""
        sign = cast(greater_than(param, 0.0), param.dtype) - cast(less_than(param, 0.0), param.dtype)
        return add_n([grad, scale(sign, self.coeff)]) if self.coeff else grad

    def __repr__(self) -> str:
        return f"L1Decay, coeff={self.coeff:f}"


def regularizer_of(weight_decay: Any) -> Any:
    """What an optimizer's `weight_decay` stands for: None, a number (L2Decay), or a regularizer.

    Raises: TypeError for anything else.
    """
    if weight_decay is None or callable(weight_decay):
        return weight_decay
    if isinstance(weight_decay, (int, float)):
        return L2Decay(weight_decay)
    raise TypeError(f"weight_decay: expected a number, L1Decay, L2Decay or None, got {weight_decay!r}")
