"""`static_pylayer`: a part of a program whose gradient the user writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.autograd.py_layer import PyLayer, PyLayerContext
from minipd.framework.tensor import Tensor

__all__ = ["static_pylayer"]


def static_pylayer(forward_fn: Callable, inputs: Sequence[Tensor], backward_fn: Callable | None = None,
                   name: str | None = None) -> Any:
    """Paddle's `paddle.static.nn.static_pylayer`: `forward_fn(*inputs)`, with `backward_fn` as its gradient.

    backward_fn: takes one gradient per result and returns one per input (None where there is none).  Without it, no
    gradient flows.  Unlike Paddle's, it also serves outside of static mode.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(2.0, stop_gradient=False)
    >>> static_pylayer(lambda x: x * x, [x], lambda g: g * 100.0).backward()
    >>> x.grad.item()
    100.0

    Raises: TypeError for what is no function or no list of tensors.
    """
    for role, fn in (("forward_fn", forward_fn), ("backward_fn", backward_fn)):
        if not callable(fn) and not (role == "backward_fn" and fn is None):
            raise TypeError(f"static_pylayer: expected {role} to be a function, got {fn!r}")
    if not isinstance(inputs, (list, tuple)) or not all(isinstance(x, Tensor) for x in inputs):
        raise TypeError(f"static_pylayer: expected inputs to be a list of tensors, got {inputs!r}")
    if backward_fn is None:
        inputs = [x.detach() for x in inputs]

    class StaticPyLayer(PyLayer):
        """The two functions as one layer."""

        @staticmethod
        def forward(ctx: PyLayerContext, *args: Any) -> Any:
            return forward_fn(*args)

        @staticmethod
        def backward(ctx: PyLayerContext, *grads: Any) -> Any:
            assert backward_fn is not None
            return backward_fn(*grads)

    return StaticPyLayer.apply(*inputs)
