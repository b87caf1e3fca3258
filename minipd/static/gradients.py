"""Gradients in static mode: written behind the forward computation."""

from __future__ import annotations

from typing import Any

from minipd.autograd.engine import grad
from minipd.framework.tensor import Parameter, Tensor
from minipd.static.program import default_main_program

__all__ = ["append_backward", "gradients"]


def gradients(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> list[Tensor | None]:
    """The gradients of `targets` by `inputs`, None where there is none; they can be differentiated again.

    inputs: tensors through which gradients flow (`stop_gradient` is False).  no_grad_set: tensors at which they end.
    """
    return grad(targets, inputs, target_gradients, create_graph=True, allow_unused=True,
                no_grad_vars=None if no_grad_set is None else list(no_grad_set))


def append_backward(loss: Tensor, parameter_list: Any = None, no_grad_set: Any = None, callbacks: Any = None,
                    checkpoints: Any = None, distop_context: Any = None) -> list[tuple[Parameter, Tensor]]:
    """Write the gradients of `loss` by the parameters of the default main program; returns (parameter, gradient) pairs.

    parameter_list: only these.  callbacks, checkpoints, distop_context: accepted as in Paddle, without effect.
    """
    blocked = {p if isinstance(p, str) else p.name for p in no_grad_set or ()}
    params = default_main_program().all_parameters() if parameter_list is None else list(parameter_list)
    params = [p for p in params if not p.stop_gradient and p.name not in blocked]
    found = gradients([loss], params)
    return [(p, g) for p, g in zip(params, found, strict=True) if g is not None]
