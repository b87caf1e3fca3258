"""Normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Constant
from minipd.nn.layer import Layer

__all__ = ["RMSNorm"]


class RMSNorm(Layer):
    """x / sqrt(mean(x^2) + epsilon) * weight over the last dimensions.   (Zhang, Sennrich 2019)

    normalized_shape: their sizes (an int: of the last one), and the shape of `weight`, which starts as ones.

    >>> from minipd.ops.creation import to_tensor
    >>> RMSNorm(2, epsilon=0.0)(to_tensor([[1.0, 7.0]])).tolist()
    [[0.20000000298023224, 1.399999976158142]]
    """

    def __init__(self, normalized_shape: int | Sequence[int], epsilon: float = 1e-5, weight_attr: Any = None,
                 name: str | None = None):
        super().__init__()
        shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.normalized_shape, self.epsilon = shape, epsilon
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"
