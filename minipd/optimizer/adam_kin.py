"""Adam's kin: Adamax, NAdam, RAdam, Lamb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops import update
from minipd.ops.creation import full_like
from minipd.optimizer.adam import BETA_POWERS, check_betas
from minipd.optimizer.groups import Group
from minipd.optimizer.optimizer import Optimizer
from minipd.optimizer.state import Power, power

__all__ = ["Adamax", "Lamb", "NAdam", "RAdam"]


class Adamax(Optimizer):
    """Adam by the largest gradient so far, fading with beta2.   (Kingma, Ba 2015, section 7.1)

    Raises: ValueError for betas or epsilon out of range.
    """

    row = update.Adamax
    state_names = ("moment", "inf_norm")
    powers = BETA_POWERS[:1]

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
                 parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2,
                         epsilon=epsilon)
        check_betas(self)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, which grows towards beta1 at the pace of momentum_decay.   (Dozat 2016)

    Raises: ValueError for betas or epsilon out of range, or a negative momentum_decay.
    """

    row = update.NAdam
    state_names = ("mu_product", "moment1", "moment2")
    powers = (power("momentum_decay_pow", lambda attrs: 0.96, like_param=True),
              power("beta2_pow", lambda attrs: attrs["beta2"], like_param=True))

    def __init__(self, learning_rate: Any = 0.002, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: float = 1e-8,
                 momentum_decay: float = 0.004, parameters: Any = None, weight_decay: Any = None,
                 grad_clip: Any = None, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2,
                         epsilon=epsilon, momentum_decay=momentum_decay)
        check_betas(self)
        if momentum_decay < 0:
            raise ValueError(f"NAdam: expected momentum_decay >= 0, got {momentum_decay}")

    def first(self, name: str, like: Tensor) -> Tensor:
        return full_like(like, 1.0) if name == "mu_product" else super().first(name, like)


class RAdam(Optimizer):
    """Adam that starts without its denominator, and adds it when enough gradients are in.   (Liu et al. 2020)

    Raises: ValueError for betas or epsilon out of range.
    """

    row = update.RAdam
    state_names = ("moment1", "moment2")
    powers = (power("beta1_pow", lambda attrs: attrs["beta1"], like_param=True),
              power("beta2_pow", lambda attrs: attrs["beta2"], like_param=True),
              Power("rho", lambda attrs, t: t * attrs["beta2"] ** t / (1 - attrs["beta2"] ** t) if t else 1.0,
                    like_param=True))

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: float = 1e-8,
                 parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2,
                         epsilon=epsilon)
        check_betas(self)


class Lamb(Optimizer):
    """Adam whose step is as long as the parameter's norm asks for; for large batches.   (You et al. 2020)

    Args:
        lamb_weight_decay: a term lamb_weight_decay * param of the step.
        exclude_from_weight_decay_fn: parameter -> whether it has no such term.
        always_adapt: scale the step also where there is none.

    Raises: ValueError for betas or epsilon out of range.
    """

    row = update.Lamb
    state_names = ("moment1", "moment2")
    powers = BETA_POWERS

    def __init__(self, learning_rate: Any = 0.001, lamb_weight_decay: float = 0.01, beta1: Any = 0.9,
                 beta2: Any = 0.999, epsilon: Any = 1e-6, parameters: Any = None, grad_clip: Any = None,
                 exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None, multi_precision: bool = False,
                 always_adapt: bool = False, name: str | None = None):
        super().__init__(learning_rate, parameters, None, grad_clip, name, beta1=beta1, beta2=beta2, epsilon=epsilon,
                         lamb_weight_decay=lamb_weight_decay)
        check_betas(self)
        self.exclude_from_weight_decay_fn, self.always_adapt = exclude_from_weight_decay_fn, bool(always_adapt)
        self.multi_precision = multi_precision

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        attrs = super().attributes(param, group)
        decay = attrs.pop("lamb_weight_decay")
        if self.exclude_from_weight_decay_fn is not None and self.exclude_from_weight_decay_fn(param):
            decay = 0.0
        return {**attrs, "weight_decay": decay, "adapt": self.always_adapt or decay > 0}
