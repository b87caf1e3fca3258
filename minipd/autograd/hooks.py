"""Hooks: functions of the user that see a gradient on its way, and may replace it.

They belong to a result of a node, `node.hooks[index]`, each under a number of its own, so that one function can be
registered twice and taken off once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.autograd.tape import Node, node_of
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor

__all__: list[str] = []


class RemovableHandle:
    """What `register_hook` returns: `remove()` takes the hook off."""

    def __init__(self, hooks: dict[int, Callable], number: int):
        self.hooks, self.number = hooks, number

    def remove(self) -> bool:
        """Take the hook off; False if it was off already."""
        return self.hooks.pop(self.number, None) is not None


def register_hook(x: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call `hook(grad)` when the gradient of `x` is complete; what it returns, if not None, replaces the gradient.

    Hooks run in the order in which they were registered, in `backward` and in `grad`.  They belong to the value that
    `x` holds now: after an in-place write, x is another value.

    Raises: RuntimeError if `x` does not take part in differentiation.
    """
    if x.stop_gradient:
        raise RuntimeError(f"register_hook: tensor {x.name} has stop_gradient=True, so it gets no gradient; set "
                           "stop_gradient=False first")
    node = node_of(x)
    if node.hooks is None:
        node.hooks = {}
    hooks = node.hooks.setdefault(x.index, {})
    number = max(hooks, default=-1) + 1
    hooks[number] = hook
    return RemovableHandle(hooks, number)


def through_hooks(node: Node, index: int, g: Tensor) -> Tensor:
    """The gradient of a result after its hooks, each of which sees what the one before has returned.

    Raises: TypeError, ValueError for a hook that returns no tensor, or one that cannot be this gradient.
    """
    for hook in list(node.hooks[index].values()):           # a hook may take itself off
        new = hook(g)
        if new is None:
            continue
        name = getattr(hook, "__qualname__", repr(hook))
        if not isinstance(new, Tensor):
            raise TypeError(f"hook {name} on the gradient of a {node!r}: expected a Tensor or None, got "
                            f"{type(new).__name__}")
        if new.payload.shape != g.payload.shape or new.payload.dtype != g.payload.dtype:
            raise ValueError(f"hook {name} on the gradient of a {node!r}: expected a gradient like the one it was "
                             f"given, {describe(g.payload)}, got {describe(new.payload)}")
        g = new
    return g
