"""Methods of a handle: which memory and which history it has.

They change the handle (`set_`, `detach_`), or let it take part in differentiation, where in-place functions write the
memory that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor, aliased, settled
from minipd.framework.views import check_writable, write_anew
from minipd.ops.creation import Assign
from minipd.ops.fft import resized

__all__: list[str] = []


# ------------------------------------------------------------------------------------------------ memory
def _hold(x: Tensor, payload: Any, source: Tensor) -> None:
    """Let the handle x hold `payload`, which is in the memory of `source`."""
    x.payload, x.storage, x.view_of, x.views = payload, aliased(source), None, None
    x.seen = x.storage.version


def _data(self: Tensor) -> Tensor:
    """The same memory without history; assigning a tensor lets this one share its memory, with its history as it is."""
    return self.detach()


def _set_data(self: Tensor, source: Tensor) -> None:
    _hold(self, source.values("data"), source)


def set_(x: Tensor, source: Tensor | None = None, shape: Sequence[int] | None = None,
         stride: Sequence[int] | None = None, offset: int = 0, name: str | None = None) -> Tensor:
    """Let x share the memory of `source`: from byte `offset` on, in this shape, with strides in elements (by default
    row-major).  Without a source x has no elements.  Returns x.

    Raises: ValueError if the memory of source has gaps or is smaller, RuntimeError for a leaf that wants a gradient.
    """
    check_writable(x, "set_")
    if source is None:
        source = Tensor(np.empty(0, x.payload.dtype))
    memory = source.values("set_()")
    shape = tuple(memory.shape if shape is None and stride is None and not offset else
                  (memory.size - offset // memory.itemsize,) if shape is None else shape)
    strides = None if stride is None else tuple(s * memory.itemsize for s in stride)
    try:
        if offset < 0:
            raise ValueError("negative offset")
        payload = np.ndarray(shape, memory.dtype, memory, offset, strides)
    except (TypeError, ValueError):
        raise ValueError(f"set_: expected a shape, strides and an offset within the memory of source "
                         f"{describe(memory)}, got shape={list(shape)}, stride={stride}, offset={offset}") from None
    _hold(x, payload, source)
    x.node, x.stop_gradient = None, True
    return x


def resize_(x: Tensor, shape: Sequence[int], fill_zero: bool = False, name: str | None = None) -> Tensor:
    """Let x have this shape, with its first elements in row-major order, and zeros after them (with or without
    `fill_zero`).  Returns x."""
    def resize(x: Tensor) -> Tensor:
        return resized(x.reshape([-1]), 0, int(np.prod(shape))).reshape(shape)
    return write_anew(x, resize)


def reconstruct_from_(self: Tensor, other: Tensor) -> None:
    """Let this handle be what another is: memory, history and stop_gradient."""
    _hold(self, settled(other), other)
    self.node, self.index, self.stop_gradient = other.node, other.index, other.stop_gradient


def copy_(self: Tensor, other: Tensor, blocking: bool = True) -> Tensor:
    """The values (and shape) of another tensor, in place.  Returns the tensor itself.

    Raises: TypeError if the dtype differs.
    """
    if other.payload.dtype != self.payload.dtype:
        raise TypeError(f"copy_: expected a tensor of {self.dtype}, got {describe(other.payload)}; cast it first")

    def copy(_: Tensor, other: Tensor) -> Tensor:
        return Assign(other)
    return write_anew(self, copy, other)


# ------------------------------------------------------------------------------------------------ history
def detach_(self: Tensor) -> Tensor:
    """Forget the history, in place.  Returns the tensor itself."""
    self.node, self.index, self.stop_gradient = None, 0, True
    return self


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Take part in differentiation from now on, or not.  Returns the tensor itself."""
    self.stop_gradient = not requires_grad
    return self


def _requires_grad(self: Tensor) -> bool:
    """The opposite of `stop_gradient`."""
    return not self.stop_gradient


def _set_requires_grad(self: Tensor, on: bool) -> None:
    self.stop_gradient = not on


def _grad_fn(self: Tensor) -> Any:
    """The tape's node that this tensor is a result of, None for a leaf."""
    return None if self.is_leaf else self.node


# ------------------------------------------------------------------------------------------------ functions
def apply(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """func(tensor).

    Raises: RuntimeError if the tensor takes part in differentiation, as in Paddle: call the function instead.
    """
    _without_gradient("apply", self, func)
    return func(self)


def apply_(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """func(tensor), in place.  Returns the tensor itself."""
    _without_gradient("apply_", self, func)
    return write_anew(self, func)


def _without_gradient(what: str, x: Tensor, func: Any) -> None:
    if not callable(func):
        raise TypeError(f"{what}: expected a function of a tensor, got {type(func).__name__}")
    if not x.stop_gradient:
        raise RuntimeError(f"{what}: expected a tensor without gradient, but {x.name} has stop_gradient=False; call "
                           "the function itself")


class DenseTensor:
    """What `get_tensor` returns: a tensor that prints its parts."""

    def __init__(self, x: Tensor):
        self.tensor = x

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self.tensor.__array__(*args, **kwargs)

    def shape(self) -> list[int]:
        """The sizes of the dimensions."""
        return list(self.tensor.shape)

    def __repr__(self) -> str:
        x = self.tensor
        data = " ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in x.reshape([-1]).tolist())
        fields = {"shape": list(x.shape), "layout": x.layout, "place": x.place, "dtype": x.dtype.name,
                  "data": f"[{data}]"}
        return "".join(f"  - {name}: {value}\n" for name, value in fields.items())


def get_tensor(self: Tensor) -> DenseTensor:
    """The tensor as Paddle's `DenseTensor`, which prints shape, layout, place, dtype and data."""
    return DenseTensor(self)


def value(self: Tensor) -> Tensor:
    """The tensor itself."""
    return self


for _method in (set_, resize_, reconstruct_from_, copy_, detach_, requires_grad_, apply, apply_, get_tensor, value):
    setattr(Tensor, _method.__name__, _method)
for _name, _property in (("data", property(_data, _set_data)), ("grad_fn", property(_grad_fn)),
                         ("grad_", property(lambda self: self.grad, doc="The gradient.")),
                         ("requires_grad", property(_requires_grad, _set_requires_grad))):
    setattr(Tensor, _name, _property)
