"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops.update import Sgd
from minipd.optimizer.optimizer import Optimizer, State

__all__ = ["SGD"]


class SGD(Optimizer):
    """param - learning_rate * grad.

    multi_precision: keep a float32 copy of float16 and bfloat16 parameters.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([3.0], stop_gradient=False)
    >>> sgd = SGD(learning_rate=0.25, parameters=[x])
    >>> (x * x).sum().backward()
    >>> sgd.step()
    >>> x.tolist()
    [1.5]
    """

    def __init__(self, learning_rate: Any = 0.001, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, multi_precision: bool = False, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self.multi_precision = multi_precision

    def rule(self, param: Tensor, grad: Tensor, state: State, lr: Tensor, step: Tensor, skip: Any,
             **attributes: Any) -> tuple[Tensor, State]:
        return Sgd(param, grad, lr, skip), {}
