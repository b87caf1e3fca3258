"""Steps along the gradient: SGD, Momentum, ASGD, Rprop."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.tensor import Tensor
from minipd.ops import update
from minipd.ops.creation import full_like
from minipd.ops.joining import stack
from minipd.ops.scaling import scale
from minipd.optimizer.groups import Group
from minipd.optimizer.optimizer import Optimizer
from minipd.optimizer.state import Power

__all__ = ["ASGD", "SGD", "Momentum", "Rprop"]


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

    row = update.Sgd

    def __init__(self, learning_rate: Any = 0.001, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, multi_precision: bool = False, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self.multi_precision = multi_precision


class Momentum(Optimizer):
    """Steps along a velocity: velocity' = momentum * velocity + grad.

    use_nesterov: look ahead along it: the step is grad + momentum * velocity'.  rescale_grad: a factor on gradients.
    use_multi_tensor: accepted, without effect.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([3.0], stop_gradient=False)
    >>> momentum = Momentum(learning_rate=0.25, momentum=0.5, parameters=[x])
    >>> for _ in range(2):
    ...     momentum.clear_grad()
    ...     x.sum().backward()
    ...     momentum.step()
    >>> x.tolist()                      # 3 - 0.25 * 1 - 0.25 * 1.5
    [2.375]
    """

    row = update.Momentum
    state_names = ("velocity",)

    def __init__(self, learning_rate: Any = 0.001, momentum: float = 0.9, parameters: Any = None,
                 use_nesterov: bool = False, weight_decay: Any = None, grad_clip: Any = None,
                 multi_precision: bool = False, rescale_grad: float = 1.0, use_multi_tensor: bool = False,
                 name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, momentum=momentum,
                         use_nesterov=bool(use_nesterov))
        self.multi_precision, self.rescale_grad = multi_precision, float(rescale_grad)

    def decay_term(self, param: Tensor, group: Group) -> Any:
        term, factor = super().decay_term(param, group), self.rescale_grad
        if factor == 1.0:
            return term
        return lambda p, g: scale(g, factor) if term is None else term(p, scale(g, factor))


class ASGD(Optimizer):
    """Steps along the average of the last gradients of `batch_num` batches that come round (Schmidt et al. 2017).

    Raises: ValueError for a batch_num that is not positive.
    """

    row = update.Asgd
    state_names = ("d", "y")
    powers = (Power("m", lambda attrs, steps: steps, lambda attrs, value: int(value), dtype=np.int64),)

    def __init__(self, learning_rate: Any = 0.001, batch_num: int = 1, parameters: Any = None,
                 weight_decay: Any = None, grad_clip: Any = None, multi_precision: bool = False,
                 name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if isinstance(batch_num, bool) or not isinstance(batch_num, int) or batch_num < 1:
            raise ValueError(f"ASGD: expected batch_num to be a positive int, got {batch_num!r}")
        self.batch_num, self.multi_precision = batch_num, multi_precision

    def first(self, name: str, like: Tensor) -> Tensor:
        zeros = super().first(name, like)
        return stack([zeros] * self.batch_num, 0) if name == "y" else zeros


class Rprop(Optimizer):
    """Steps against the sign of the gradient, of a length that each element learns (Riedmiller, Braun 1993).

    learning_rate: the first length.  learning_rate_range: the shortest and the longest.  etas: by what a length is
    multiplied when the sign changes, and when it stays.
    Raises: ValueError for a range or factors out of order.
    """

    row = update.Rprop
    state_names = ("prevs", "learning_rates")

    def __init__(self, learning_rate: Any = 0.001, learning_rate_range: tuple[float, float] = (1e-5, 50),
                 parameters: Any = None, etas: tuple[float, float] = (0.5, 1.2), grad_clip: Any = None,
                 multi_precision: bool = False, name: str | None = None):
        low, high = map(float, learning_rate_range)
        shrink, grow = map(float, etas)
        super().__init__(learning_rate, parameters, None, grad_clip, name, learning_rate_range=(low, high),
                         etas=(shrink, grow))
        self.length, self.multi_precision = self.rate(), multi_precision
        if not 0 < low <= self.length <= high:
            raise ValueError(f"Rprop: expected 0 < learning_rate_range[0] <= learning_rate <= learning_rate_range[1], "
                             f"got a rate of {self.length} and a range {low} .. {high}")
        if not 0 < shrink < 1 < grow:
            raise ValueError(f"Rprop: expected etas with 0 < etas[0] < 1 < etas[1], got {etas}")

    def first(self, name: str, like: Tensor) -> Tensor:
        return full_like(like, self.length) if name == "learning_rates" else super().first(name, like)

    def decay_term(self, param: Tensor, group: Group) -> Any:
        return getattr(param, "regularizer", None)
