"""Hooks: functions of the user that see a gradient on its way, and may replace it.

They belong to a result of a node, `node.hooks[index]`, each under a number of its own, so that one function can be
registered twice and taken off once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from minipd.autograd.tape import Node, node_of, open_call
from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
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
    context = current()
    context.ground.settle("a hook")
    if is_traced(x.payload):
        context.ground.by_tape()
    open_call(x)
    node = node_of(x)
    if node.hooks is None:
        node.hooks = {}
    hooks = node.hooks.setdefault(x.index, {})
    number = max(hooks, default=-1) + 1
    hooks[number] = hook
    return RemovableHandle(hooks, number)


class Retain:
    """A hook that adds the gradient to `.grad` of the tensor, which is no leaf.  It does not keep the tensor alive."""

    def __init__(self, x: Tensor):
        self.tensor = weakref.ref(x)

    def __call__(self, g: Tensor) -> None:
        x = self.tensor()
        if x is not None:
            x.grad = Tensor(g.payload) if x.grad is None else x.grad + g
            x.grad.stop_gradient = False


def retain_grads(self: Tensor) -> None:
    """Let `backward` fill `.grad` of this tensor too, though it is no leaf.

    Raises: RuntimeError if it does not take part in differentiation.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor(3.0, stop_gradient=False)
    >>> y = x * x
    >>> y.retain_grads()
    >>> (y * 2.0).backward()
    >>> y.grad.item()
    2.0
    """
    if self.is_leaf and not self.stop_gradient:
        return                              # it is filled anyhow
    if self.stop_gradient or not any(isinstance(hook, Retain) for hook in hooks_of(self)):
        register_hook(self, Retain(self))


def hooks_of(x: Tensor) -> list[Callable]:
    """The hooks on the value that `x` holds."""
    hooks = None if x.node is None else x.node.hooks
    return [] if hooks is None else list(hooks.get(x.index, {}).values())


def through_hooks(node: Node, index: int, g: Tensor, retain: bool) -> Tensor:
    """The gradient of a result after its hooks, each of which sees what the one before has returned; what is retained,
    if it is, is the last.

    Raises: TypeError, ValueError for a hook that returns no tensor, or one that cannot be this gradient.
    """
    hooks = list(node.hooks[index].values())                # a copy: a hook may take itself off
    for hook in sorted(hooks, key=lambda hook: isinstance(hook, Retain)):
        if isinstance(hook, Retain) and not retain:
            continue
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
