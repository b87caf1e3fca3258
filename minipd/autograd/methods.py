"""What the autograd floor adds to Tensor."""

from __future__ import annotations

from typing import Any

from minipd.autograd import engine, hooks
from minipd.framework.tensor import Tensor, attach

__all__: list[str] = []


def backward(self: Tensor, grad_tensor: Tensor | None = None, retain_graph: bool = False) -> None:
    """Add the gradients of this tensor to `.grad` of the leaves it depends on.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0, stop_gradient=False)
    >>> (x * x).backward()
    >>> x.grad.item()
    6.0
    """
    engine.Pass(retain_graph, create_graph=False).run([engine.root_of(self, grad_tensor, "backward")])


def gradient(self: Tensor) -> Any:
    """The accumulated gradient as a numpy array; None if there is none."""
    return None if self.grad is None else self.grad.numpy()


attach(backward=backward, gradient=gradient, retain_grads=hooks.retain_grads, register_hook=hooks.register_hook)
