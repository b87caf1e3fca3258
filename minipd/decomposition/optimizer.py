"""Rules of the optimizers' steps."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from minipd.decomposition.table import decompose_rule
from minipd.framework import dtype as dtypes
from minipd.framework.row import ROWS, Row
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.elementary import sqrt
from minipd.ops.math import abs, maximum, minimum, where
from minipd.ops.reduce import sum
from minipd.ops.reshape import reshape
from minipd.ops.update.stepping import formula_of, sorter

__all__: list[str] = []

#: what a formula asks of an array module, on tensors
ON_TENSORS = SimpleNamespace(abs=abs, arange=arange, maximum=maximum, minimum=minimum, reshape=reshape, sqrt=sqrt,
                             sum=sum, where=where)


@decompose_rule("sgd")
def sgd(param: Tensor, grad: Tensor, learning_rate: Tensor, skip_update: Tensor) -> Tensor:
    """param - learning_rate grad."""
    return where(skip_update, param, param - cast(learning_rate, param.dtype) * grad)


@decompose_rule("adamw")
def adamw(param: Tensor, grad: Tensor, moment1: Tensor, moment2: Tensor, step: Tensor, learning_rate: Tensor,
          skip_update: Tensor, *, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
          weight_decay: float = 0.01) -> tuple[Tensor, Tensor, Tensor]:
    """The row's formula.  What depends on step and rate only is one number, and computed in float64, as by the kernel.
    """
    t, rate = cast(step, dtypes.float64), cast(learning_rate, dtypes.float64)
    numbers: tuple[Any, ...] = 1.0 - rate * weight_decay, rate / (1.0 - beta1 ** t), 1.0 - beta2 ** t
    decay, pace, correction = (cast(number, param.dtype) for number in numbers)
    m = moment1 * beta1 + grad * (1.0 - beta1)
    v = moment2 * beta2 + grad * grad * (1.0 - beta2)
    p = param * decay - m / (sqrt(v / correction) + epsilon) * pace
    new, old = (p, m, v), (param, moment1, moment2)
    return tuple(where(skip_update, o, n) for o, n in zip(old, new, strict=True))  # type: ignore[return-value]


def by_formula(row: Row, formula: Callable) -> Callable:
    """The rule of a row that says by a formula what it computes."""
    sort = sorter(formula)

    def rule(*operands: Any, **attrs: Any) -> tuple[Tensor, ...]:
        tensors, numbers, skip, old = sort(operands)
        new = formula(ON_TENSORS, *tensors, *(cast(x, dtypes.float64) for x in numbers), **attrs)
        new = [cast(x, o.dtype) for x, o in zip(new, old, strict=True)]
        return tuple(new if skip is False else [where(skip, o, x) for x, o in zip(new, old, strict=True)])
    return rule


for _row in list(ROWS.values()):
    _formula = formula_of(_row)
    if _formula is not None:
        decompose_rule(_row.name)(by_formula(_row, _formula))
