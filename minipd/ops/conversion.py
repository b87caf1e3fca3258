"""Tensors from what other libraries and files hold, and back."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ops.creation import to_tensor, zeros
from minipd.ops.making import asked_for

__all__ = ["MmapStorage", "as_tensor", "asarray", "from_dlpack", "from_numpy", "to_dlpack"]


def as_tensor(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
              pin_memory: bool = False) -> Tensor:
    """`to_tensor` with PyTorch's parameters: a tensor with a copy of `data`.  (Also `paddle.tensor(...)`.)

    >>> as_tensor([1.0], requires_grad=True).stop_gradient
    False
    """
    return asked_for(to_tensor(data, dtype), "as_tensor", device, requires_grad)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None,
            requires_grad: bool = False) -> Tensor:
    """The same with the array API's parameters.  It copies, as Paddle does, whatever `copy` says."""
    return asked_for(to_tensor(obj, dtype), "asarray", device, requires_grad)


def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor with a copy of a numpy array, of its dtype.

    Raises: TypeError if it is no array.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy array, got {type(ndarray).__name__}")
    return to_tensor(ndarray)


def _typed(name: str, dtype: str) -> Any:
    def make(*data: Any) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return to_tensor(data[0], dtype)
        return zeros(data or (0,), dtype)
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {dtype}: `{name}([1, 2])` with these values, `{name}(2, 3)` of this shape."
    return make


#: the constructors that are named after a dtype, as in PyTorch
TYPED = {name: _typed(name, dtype) for name, dtype in (
    ("BFloat16Tensor", "bfloat16"), ("BoolTensor", "bool"), ("ByteTensor", "uint8"), ("CharTensor", "int8"),
    ("DoubleTensor", "float64"), ("FloatTensor", "float32"), ("HalfTensor", "float16"), ("IntTensor", "int32"),
    ("LongTensor", "int64"), ("ShortTensor", "int16"))}
globals().update(TYPED)
__all__ += TYPED


# ------------------------------------------------------------------------------------------------ DLPack
class _Capsule:
    """A DLPack capsule as an object that exports one, which is what numpy reads."""

    def __init__(self, capsule: Any):
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0                         # the CPU


def _exported(self: Tensor, **how: Any) -> Any:
    """The protocol by which other libraries read this tensor's memory.  What they write there goes unnoticed here.

    Raises: TypeError for bfloat16, which numpy does not export.
    """
    if self.payload.dtype == dtypes.bfloat16.np:
        raise TypeError("__dlpack__: expected a dtype that numpy exports, got bfloat16; cast it to float32 first")
    return self.values("__dlpack__()").__dlpack__(**how)


def to_dlpack(x: Tensor) -> Any:
    """The memory of x as a DLPack capsule, for one reader.

    >>> x = to_tensor([1.0, 2.0])
    >>> from_dlpack(to_dlpack(x))[0] = 5.0
    >>> x.tolist()
    [5.0, 2.0]
    """
    return _exported(x, max_version=(1, 0))


def from_dlpack(dlpack: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of a DLPack capsule, or of an object that exports one (an array of numpy, torch, ...).

    copy: True for memory of its own.  Raises: TypeError for anything else, and for dtypes that minipd does not have.
    """
    source = _Capsule(dlpack) if type(dlpack).__name__ == "PyCapsule" else dlpack
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"from_dlpack: expected a capsule, or an object with __dlpack__, got {type(dlpack).__name__}")
    array = np.from_dlpack(source)
    dtypes.of(array.dtype)
    return asked_for(Tensor(array.copy() if copy else array), "from_dlpack", device, False)


for _name, _method in (("__dlpack__", _exported), ("__dlpack_device__", _Capsule.__dlpack_device__)):
    setattr(Tensor, _name, _method)


# ------------------------------------------------------------------------------------------------ files
class MmapStorage:
    """The first `nbytes` of a file, of which parts can be read as tensors without reading all of it.

    Raises: FileNotFoundError, ValueError if the file is shorter.
    """

    def __init__(self, filename: str, nbytes: int):
        if os.path.getsize(filename) < nbytes:
            raise ValueError(f"MmapStorage: expected a file of at least {nbytes} bytes, {filename} has "
                             f"{os.path.getsize(filename)}")
        self.bytes = np.memmap(filename, np.uint8, "c", shape=(nbytes,))        # what is written stays in memory

    def get_slice(self, dtype: Any = "float32", start: int = 0, stop: int = -1, step: int = 1) -> Tensor:
        """Elements start, start + step, ... before `stop` (-1: the end) of the bytes as an array of `dtype`."""
        d = dtypes.to_np(dtype)
        elements = np.asarray(self.bytes[:len(self.bytes) // d.itemsize * d.itemsize]).view(d)
        return Tensor(elements[start:None if stop == -1 else stop:step])
