"""Optimizers that divide by what gradients have been: Adagrad, RMSProp, Adadelta."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops import update
from minipd.ops.creation import full_like
from minipd.optimizer.optimizer import Optimizer

__all__ = ["Adadelta", "Adagrad", "RMSProp"]


class Adagrad(Optimizer):
    """The gradient over the root of the sum of all its squares so far.   (Duchi, Hazan, Singer 2011)

    initial_accumulator_value: what that sum begins with.
    """

    row = update.Adagrad
    state_names = ("moment",)

    def __init__(self, learning_rate: Any, epsilon: float = 1e-6, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, name: str | None = None, initial_accumulator_value: float = 0.0):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, epsilon=epsilon)
        self.initial_accumulator_value = float(initial_accumulator_value)

    def first(self, name: str, like: Tensor) -> Tensor:
        return full_like(like, self.initial_accumulator_value)


class RMSProp(Optimizer):
    """Momentum of the gradient over the root of the moving average of its square.   (Hinton 2012, lecture 6e)

    centered: over its standard deviation instead.
    Raises: ValueError for a rho outside of [0, 1), or a negative epsilon or momentum.
    """

    row = update.RmsProp
    state_names = ("momentum", "mean_square", "mean_grad")

    def __init__(self, learning_rate: Any, rho: float = 0.95, epsilon: float = 1e-6, momentum: float = 0.0,
                 centered: bool = False, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None,
                 name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, rho=rho, epsilon=epsilon,
                         momentum=momentum, centered=bool(centered))
        if not 0 <= rho < 1 or epsilon < 0 or momentum < 0:
            raise ValueError(f"RMSProp: expected rho in [0, 1), epsilon >= 0 and momentum >= 0, got rho={rho}, "
                             f"epsilon={epsilon}, momentum={momentum}")


class Adadelta(Optimizer):
    """The gradient times the root mean square of the last updates, over that of the last gradients.  (Zeiler 2012)

    Raises: ValueError for a rho outside of [0, 1), or a negative epsilon.
    """

    row = update.Adadelta
    state_names = ("_avg_squared_grad", "_avg_squared_update")

    def __init__(self, learning_rate: Any = 0.001, epsilon: float = 1e-6, rho: float = 0.95, parameters: Any = None,
                 weight_decay: Any = None, grad_clip: Any = None, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, rho=rho, epsilon=epsilon)
        if not 0 <= rho < 1 or epsilon < 0:
            raise ValueError(f"Adadelta: expected rho in [0, 1) and epsilon >= 0, got rho={rho}, epsilon={epsilon}")
