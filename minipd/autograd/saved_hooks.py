"""Hooks on what the tape saves: to keep it elsewhere (on disk, in another dtype, not at all) until backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from minipd.framework.context import using
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor

__all__ = ["saved_tensors_hooks"]


class Hooks(NamedTuple):
    """pack(tensor) -> anything, called when a value is saved; unpack(anything) -> Tensor, when a rule reads it."""

    pack: Callable[[Tensor], Any]
    unpack: Callable[[Any], Tensor]


class Packed:
    """A saved value, as `pack` left it.  It serves as the Meta of the value, for rules that want no more of it.

    It is unpacked when a rule first reads it, and stays so until the graph is freed: several rules may read it.
    """

    __slots__ = ("dtype", "kept", "shape", "unpack", "value")

    def __init__(self, hooks: Hooks, value: Tensor):
        self.shape, self.dtype = tuple(value.payload.shape), value.payload.dtype
        self.kept, self.unpack = hooks.pack(value.detach()), hooks.unpack
        self.value: Tensor | None = None

    def tensor(self) -> Tensor:
        """A new handle on the value, without history.

        Raises: TypeError, ValueError if the hook returns no tensor, or one of another shape or dtype.
        """
        if self.value is None:
            got = self.unpack(self.kept)
            if not isinstance(got, Tensor):
                raise TypeError("saved_tensors_hooks: expected unpack_hook to return a Tensor, got "
                                f"{type(got).__name__}")
            if tuple(got.payload.shape) != self.shape or got.payload.dtype != self.dtype:
                raise ValueError(f"saved_tensors_hooks: expected unpack_hook to return the tensor that was packed, "
                                 f"{describe(self)}, got {describe(got.payload)}")
            self.value, self.kept = got, None
        return Tensor(self.value.payload)


def packed(hooks: Hooks, saved: list) -> list:
    """What a node keeps (`tape.keep`), with every value that is kept whole packed."""
    return [_packed(hooks, entry) for entry in saved]


def _packed(hooks: Hooks, entry: Any) -> Any:
    """(A function inside of `packed` that calls itself would be a cycle, and keep what the hooks hold alive.)"""
    if isinstance(entry, list):
        return packed(hooks, entry)
    whole = type(entry) is tuple and len(entry) == 3
    return Packed(hooks, Tensor(entry[0])) if whole else entry


class saved_tensors_hooks:
    """`with saved_tensors_hooks(pack_hook, unpack_hook)`: what operators inside save for backward goes through them.

    pack_hook(tensor) returns anything; unpack_hook is given that and returns the tensor again, when backward needs it.
    A packed value is the hooks' affair: that its tensor is modified in place later is not noticed.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0], stop_gradient=False)
    >>> with saved_tensors_hooks(lambda t: t.numpy(), to_tensor):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.layers = using(saved_hooks=Hooks(pack_hook, unpack_hook))

    def __enter__(self) -> None:
        self.layers.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.layers.__exit__(*exc)
