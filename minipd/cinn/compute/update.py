"""Optimizers: element-wise in the parameter, with 0-D operands beside it.

What does not change along the tensor (1 - beta^step and the like) is computed in float64, as the kernels do, once.
Where `skip_update` holds, everything stays as it was.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.cinn.compute.scalar import Scalar, cast, unary, where
from minipd.cinn.compute.table import elementwise

__all__: list[str] = []

FLOAT64 = np.dtype(np.float64)


def unless(skip: Scalar | bool, new: Scalar, old: Scalar) -> Scalar:
    if isinstance(skip, Scalar):
        return where(skip, old, new)
    return old if skip else new


@elementwise("sgd")
def sgd(param: Scalar, grad: Scalar, learning_rate: Scalar, skip_update: Any) -> Scalar:
    return unless(skip_update, param - cast(learning_rate, param.dtype) * cast(grad, param.dtype), param)


@elementwise("adamw")
def adamw(param: Scalar, grad: Scalar, moment1: Scalar, moment2: Scalar, step: Scalar, learning_rate: Scalar,
          skip_update: Any, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
          weight_decay: float = 0.01) -> tuple[Scalar, Scalar, Scalar]:
    t, lr = cast(step, FLOAT64), cast(learning_rate, FLOAT64)
    g = cast(grad, param.dtype)
    m = moment1 * beta1 + g * (1 - beta1)
    v = moment2 * beta2 + g * g * (1 - beta2)
    correction1, correction2 = 1 - beta1 ** t, 1 - beta2 ** t
    step_size, decay = cast(lr / correction1, param.dtype), cast(1 - lr * weight_decay, param.dtype)
    p = param * decay - m / (unary("sqrt", v / cast(correction2, v.dtype)) + epsilon) * step_size
    return unless(skip_update, p, param), unless(skip_update, m, moment1), unless(skip_update, v, moment2)
