"""Gradients in static mode: written behind the forward computation."""

from __future__ import annotations

from typing import Any

from minipd.autograd.engine import as_list, grad
from minipd.framework.tensor import Parameter, Tensor
from minipd.static.program import default_main_program

__all__ = ["append_backward", "gradients"]


def gradients(targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Any = None) -> list[Tensor | None]:
    """The gradients of `targets` by `inputs`, None where there is none; they can be differentiated again.

    inputs: tensors through which gradients flow (`stop_gradient` is False).  target_gradients: one per target, None for
    ones.  no_grad_set: tensors, or names of them, at which gradients end.
    Raises: RuntimeError for an input that stops gradients, or did when the program computed with it.
    """
    trace = default_main_program().trace
    for x in as_list(inputs):
        if isinstance(x, Tensor) and not x.stop_gradient and x._name in trace.used_stopped:
            raise RuntimeError(f"gradients: expected {x.name} to have stop_gradient=False from the start, got one that "
                               "was used before it was set; set it right behind static.data")
    return grad(targets, inputs, target_gradients, create_graph=True, allow_unused=True,
                no_grad_vars=None if no_grad_set is None else [_named("gradients", x) for x in no_grad_set])


def append_backward(loss: Tensor, parameter_list: Any = None, no_grad_set: Any = None, callbacks: Any = None,
                    checkpoints: Any = None, distop_context: Any = None) -> list[tuple[Parameter, Tensor]]:
    """Write the gradients of `loss` by the parameters of the default main program; returns (parameter, gradient) pairs.

    parameter_list: only these parameters, or names of them.  no_grad_set: not these, nor through these tensors.
    callbacks, checkpoints, distop_context: accepted as in Paddle, without effect.
    Raises: TypeError for a loss that is no tensor; ValueError for a name that no parameter has.
    """
    if not isinstance(loss, Tensor):
        raise TypeError(f"append_backward: expected the loss to be a tensor of the program, got {type(loss).__name__}")
    blocked = [_named("append_backward", x) for x in no_grad_set or ()]
    params = default_main_program().all_parameters() if parameter_list is None else [
        _named("append_backward", p) for p in parameter_list]
    names = {x.name for x in blocked}
    params = [p for p in params if not p.stop_gradient and p.name not in names]
    found = gradients([loss], params, no_grad_set=blocked)
    return [(p, g) for p, g in zip(params, found, strict=True) if g is not None]


def _named(who: str, x: Any) -> Any:
    """The tensor that x is, or names."""
    if not isinstance(x, str):
        return x
    trace = default_main_program().trace
    found = trace.state[x][0] if x in trace.state else trace.handle_called(x)
    if found is None:
        raise ValueError(f"{who}: expected names of tensors of the default main program, got {x!r}")
    return found
