"""`Tensor.to` and its short forms: another dtype, another device; and new tensors like one."""

from __future__ import annotations

import inspect
from typing import Any

from minipd.framework.place import check_device, is_device
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import Assign, full
from minipd.ops.making import asked_for

__all__: list[str] = []

#: The methods that are named after a dtype, or as PyTorch's are.
DTYPE_OF_METHOD = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "complex64": "complex64", "complex128": "complex128", "double": "float64", "float": "float32",
    "float16": "float16", "float32": "float32", "float64": "float64", "half": "float16", "int": "int32",
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "long": "int64", "short": "int16",
    "uint8": "uint8",
}  # fmt: skip


def _to(self: Tensor, device: Any = None, dtype: Any = None, blocking: bool | None = None) -> Tensor:
    check_device("to", device)
    return self if dtype is None else cast(self, dtype)


def _to_dtype(self: Tensor, dtype: Any, blocking: bool | None = None) -> Tensor:
    return _to(self, None, dtype)


def _to_other(self: Tensor, other: Tensor, blocking: bool | None = None) -> Tensor:
    return _to(self, None, other.dtype)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor on a device, with a dtype, or both; itself where nothing changes.

        to(dtype, blocking=None)    to(device, dtype=None, blocking=None)    to(other, blocking=None)

    other: a tensor whose dtype is taken.  Raises: TypeError for other arguments, ValueError for a device but the CPU.

    >>> from minipd.ops.creation import ones
    >>> x = ones([2])
    >>> x.to("float64").dtype, x.to("cpu", "int32").dtype, x.to("cpu") is x
    (paddle.float64, paddle.int32, True)
    """
    first = args[0] if args else kwargs.get("other", kwargs.get("device", kwargs.get("dtype")))
    form = _to_other if isinstance(first, Tensor) else _to if "device" in kwargs or is_device(first) else _to_dtype
    if not args and not kwargs:
        raise TypeError("to: expected a dtype, a device, or a tensor, got nothing")
    try:
        inspect.signature(form).bind(self, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"to: expected to(dtype), to(device, dtype) or to(other), and blocking; {error}") from None
    return form(self, *args, **kwargs)


def cpu(self: Tensor) -> Tensor:
    """The tensor in the memory of the CPU: itself."""
    return self


def cuda(self: Tensor, device_id: int | None = None, blocking: bool = True) -> Tensor:
    """The tensor in the memory of a GPU: always raises ValueError."""
    return _to(self, f"gpu:{device_id or 0}")


def pin_memory(self: Tensor, blocking: bool = True) -> Tensor:
    """The tensor in memory pinned for a GPU: itself, for there is none to copy to."""
    return self


def contiguous(self: Tensor) -> Tensor:
    """The tensor in row-major memory without gaps: itself if it is so, else a copy."""
    return self if self.is_contiguous() else Assign(self)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype of another."""
    return cast(self, other.dtype)


def _as(name: str, dtype: str) -> Any:
    def method(self: Tensor) -> Tensor:
        return cast(self, dtype)
    method.__name__, method.__qualname__ = name, f"Tensor.{name}"
    method.__doc__ = f"The tensor with dtype {dtype}."
    return method


# ------------------------------------------------------------------------------------------------ new ones
def _size(size: tuple) -> Any:
    """A shape given as one sequence, or as several ints."""
    return size[0] if len(size) == 1 else size


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor of shape `size` that holds `fill_value`, by default of this one's dtype.

    >>> from minipd.ops.creation import ones
    >>> ones([2], "int32").new_full([1], 7).dtype
    paddle.int32
    """
    return asked_for(full(size, fill_value, self.dtype if dtype is None else dtype), "new_full", device, requires_grad)


def new_zeros(self: Tensor, *size: Any, **asked: Any) -> Tensor:
    """Zeros: `new_zeros(2, 3)` or `new_zeros([2, 3])`, with `new_full`'s other parameters."""
    return new_full(self, _size(size), 0, **asked)


def new_ones(self: Tensor, *size: Any, **asked: Any) -> Tensor:
    """Ones: `new_ones(2, 3)` or `new_ones([2, 3])`, with `new_full`'s other parameters."""
    return new_full(self, _size(size), 1, **asked)


def new_empty(self: Tensor, *size: Any, **asked: Any) -> Tensor:
    """The same as `new_zeros`: nothing is gained by leaving memory as it is found."""
    return new_full(self, _size(size), 0, **asked)


for _name, _dtype in DTYPE_OF_METHOD.items():
    setattr(Tensor, _name, _as(_name, _dtype))
for _method in (to, cpu, cuda, pin_memory, contiguous, type_as, new_full, new_zeros, new_ones, new_empty):
    setattr(Tensor, _method.__name__, _method)
