"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops import update
from minipd.optimizer.groups import Group
from minipd.optimizer.optimizer import Optimizer, State

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Steps along the moving average of the gradient, divided by the root of that of its square.  (Kingma, Ba 2015.)

    `weight_decay` adds to the gradient (L2); AdamW's acts on the parameter itself.  Moments are kept in float32 for
    low-precision parameters; with multi_precision, so is a copy of the parameter.
    lazy_mode, use_multi_tensor: accepted, without effect.
    Raises: ValueError for amsgrad, which is not supported, and for betas or epsilon out of range.
    """

    state_names = ("moment1", "moment2")

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, lazy_mode: bool = False,
                 multi_precision: bool = False, use_multi_tensor: bool = False, amsgrad: bool = False,
                 name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        if not 0 <= beta1 < 1 or not 0 <= beta2 < 1 or epsilon < 0:
            raise ValueError(f"{type(self).__name__}: expected betas in [0, 1) and epsilon >= 0, got beta1={beta1}, "
                             f"beta2={beta2}, epsilon={epsilon}")
        if amsgrad:
            raise ValueError(f"{type(self).__name__}: amsgrad is not supported; leave it off")
        self.constants = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon)}
        self.multi_precision = multi_precision

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        return {**self.constants, "weight_decay": 0.0}

    def rule(self, param: Tensor, grad: Tensor, state: State, lr: Tensor, step: Tensor, skip: Any,
             **attributes: Any) -> tuple[Tensor, State]:
        new, moment1, moment2 = update.AdamW(param, grad, state["moment1"], state["moment2"], step, lr, skip,
                                             **attributes)
        return new, {"moment1": moment1, "moment2": moment2}


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: param (1 - learning_rate * weight_decay) before each step.

    (Loshchilov, Hutter 2019.)

    Args:
        apply_decay_param_fun: name of a parameter -> whether it decays.
        lr_ratio: parameter -> a factor on its learning rate.

    Raises: ValueError for use_lowprecision_moment and amsgrad, which are not supported.

    >>> from minipd.nn import Linear
    >>> from minipd.ops.creation import ones
    >>> model = Linear(2, 1)
    >>> adamw = AdamW(0.1, parameters=model.parameters(), apply_decay_param_fun=lambda name: ".b_" not in name)
    >>> model(ones([1, 2])).sum().backward()
    >>> adamw.step()
    >>> round(model.bias.item(), 6)             # the first step of Adam is the learning rate, against the sign
    -0.1
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 parameters: Any = None, weight_decay: float = 0.01, use_lowprecision_moment: bool = False,
                 lr_ratio: Callable[[Tensor], float] | None = None,
                 apply_decay_param_fun: Callable[[str], bool] | None = None, grad_clip: Any = None,
                 lazy_mode: bool = False, multi_precision: bool = False, amsgrad: bool = False,
                 name: str | None = None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, float(weight_decay), grad_clip, lazy_mode,
                         multi_precision, False, amsgrad, name)
        if use_lowprecision_moment:
            raise ValueError("AdamW: use_lowprecision_moment is not supported: moments are kept in float32")
        self.lr_ratio, self.apply_decay_param_fun = lr_ratio, apply_decay_param_fun

    def decay_term(self, param: Tensor, group: Group) -> Any:
        return getattr(param, "regularizer", None)

    def rate_factor(self, param: Tensor, group: Group) -> float:
        return super().rate_factor(param, group) * (1.0 if self.lr_ratio is None else self.lr_ratio(param))

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        decays = self.apply_decay_param_fun is None or self.apply_decay_param_fun(param.name)
        return {**self.constants, "weight_decay": float(group.weight_decay) if decays else 0.0}
