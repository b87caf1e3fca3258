"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.ops import update
from minipd.optimizer.groups import Group, number
from minipd.optimizer.optimizer import Optimizer
from minipd.optimizer.state import power

__all__ = ["Adam", "AdamW"]

BETA_POWERS = (power("beta1_pow_acc", lambda attrs: attrs["beta1"], ahead=1),
               power("beta2_pow_acc", lambda attrs: attrs["beta2"], ahead=1))


def check_betas(optimizer: Optimizer) -> None:
    """ValueError for betas or an epsilon out of range, the optimizer's or a group's."""
    for options in (optimizer.constants, *(optimizer.constants | group.options for group in optimizer._groups)):
        beta1, beta2, epsilon = options["beta1"], options["beta2"], options["epsilon"]
        if not 0 <= beta1 < 1 or not 0 <= beta2 < 1 or epsilon < 0:
            raise ValueError(f"{type(optimizer).__name__}: expected betas in [0, 1) and epsilon >= 0, got "
                             f"beta1={beta1}, beta2={beta2}, epsilon={epsilon}")


class Adam(Optimizer):
    """Steps along the moving average of the gradient, divided by the root of that of its square.  (Kingma, Ba 2015.)

    `weight_decay` adds to the gradient (L2); AdamW's acts on the parameter itself.  Moments are kept in float32 for
    low-precision parameters; with multi_precision, so is a copy of the parameter.
    amsgrad: divide by the largest average so far (Reddi et al. 2018).
    lazy_mode, use_multi_tensor: accepted, without effect.
    Raises: ValueError for betas or epsilon out of range.
    """

    row: Any = update.AdamW
    state_names: tuple[str, ...] = ("moment1", "moment2")
    powers = BETA_POWERS

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
                 parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, lazy_mode: bool = False,
                 multi_precision: bool = False, use_multi_tensor: bool = False, amsgrad: bool = False,
                 name: str | None = None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2,
                         epsilon=epsilon)
        check_betas(self)
        self.multi_precision = multi_precision
        if amsgrad:
            self.row, self.state_names = update.Amsgrad, ("moment1", "moment2", "moment2_max")

    def attributes(self, param: Tensor, group: Group) -> dict[str, Any]:
        return {**super().attributes(param, group), "weight_decay": 0.0}


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameter itself: param (1 - learning_rate * weight_decay) before each step.

    (Loshchilov, Hutter 2019.)

    Args:
        apply_decay_param_fun: name of a parameter -> whether it decays.
        lr_ratio: parameter -> a factor on its learning rate.

    Raises: ValueError for use_lowprecision_moment, which is not supported; TypeError for a weight_decay that is no
        number.

    >>> from minipd.nn import Linear
    >>> from minipd.ops.creation import ones
    >>> model = Linear(2, 1)
    >>> adamw = AdamW(0.1, parameters=model.parameters(), apply_decay_param_fun=lambda name: ".b_" not in name)
    >>> model(ones([1, 2])).sum().backward()
    >>> adamw.step()
    >>> round(model.bias.item(), 6)             # the first step of Adam is the learning rate, against the sign
    -0.1
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
                 parameters: Any = None, weight_decay: Any = 0.01, use_lowprecision_moment: bool = False,
                 lr_ratio: Callable[[Tensor], float] | None = None,
                 apply_decay_param_fun: Callable[[str], bool] | None = None, grad_clip: Any = None,
                 lazy_mode: bool = False, multi_precision: bool = False, amsgrad: bool = False,
                 name: str | None = None):
        decay = number("AdamW", "weight_decay", weight_decay)
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, decay, grad_clip, lazy_mode,
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
        return {**super().attributes(param, group), "weight_decay": float(group.weight_decay) if decays else 0.0}
