"""Gradients clipped where they are, in `.grad`, for training loops that do so by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minipd.framework.context import using
from minipd.framework.tensor import Tensor
from minipd.nn.clip import global_norm
from minipd.ops.cast import cast
from minipd.ops.creation import zeros
from minipd.ops.joining import stack
from minipd.ops.logic import isfinite
from minipd.ops.math import abs, maximum, minimum
from minipd.ops.reduce import max, sum

__all__ = ["clip_grad_norm_", "clip_grad_value_"]

#: norm_type -> the norm of a tensor's elements, 0-D; of several tensors, the norm of their norms
NORMS: dict[float, Any] = {
    0: lambda x: sum(cast(x != 0, x.dtype)),
    1: lambda x: sum(abs(x)),
    2: lambda x: global_norm([x]),
    math.inf: lambda x: max(abs(x)),
}


def _gradients(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    parameters = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in parameters if p.grad is not None]


def clip_grad_norm_(parameters: Iterable[Tensor] | Tensor, max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> Tensor:
    """Scale the gradients so that the norm of all of them is at most `max_norm`.  Returns the norm before, 0-D.

    norm_type: 0 (how many are not zero), 1, 2, or inf.
    Raises: ValueError for another one; RuntimeError for a norm that is not finite, with `error_if_nonfinite`.

    >>> from minipd.nn.parameter import create_parameter
    >>> p = create_parameter([2], is_bias=True)
    >>> (p * 5.0).sum().backward()
    >>> clip_grad_norm_(p, 1.0, norm_type=1).item(), p.grad.numpy().round(3).tolist()
    (10.0, [0.5, 0.5])
    """
    norm_type = float(norm_type)
    if norm_type not in NORMS:
        raise ValueError(f"clip_grad_norm_: expected a norm_type of 0, 1, 2 or inf, got {norm_type}")
    grads = _gradients(parameters)
    if not grads:
        return zeros([])
    norm = NORMS[norm_type]
    with using(grad=False):
        total = global_norm(grads) if norm_type == 2 else norm(stack([norm(g) for g in grads]))
        if error_if_nonfinite and not isfinite(total).item():
            raise RuntimeError(f"clip_grad_norm_: the norm of {len(grads)} gradients is {total.item()}, no factor "
                               "makes it finite; find where it comes from, or pass error_if_nonfinite=False")
        factor = minimum(max_norm / (total + 1e-6), 1.0)
        for g in grads:
            g.set_value(g * cast(factor, g.dtype))
    return total


def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Limit each element of the gradients to -clip_value .. clip_value."""
    with using(grad=False):
        for g in _gradients(parameters):
            g.set_value(minimum(maximum(g, -clip_value), clip_value))
