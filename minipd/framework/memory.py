"""What a tensor says of its memory: place, strides, address, element size.

Strides count elements, here as in Paddle; numpy's count bytes.
"""

from __future__ import annotations

import enum
from typing import Any, NoReturn

import numpy as np

from minipd.framework import place as places
from minipd.framework.layout import row_major
from minipd.framework.meta import describe

__all__: list[str] = []


class VarType(enum.Enum):
    """What kind of variable a tensor is: Paddle's enumeration, of which there is one member here."""

    DENSE_TENSOR = 7


class InMemory:
    """The part of Tensor that is about memory.  A tensor without values, in a trace, is as if it were row-major."""

    payload: Any
    storage: Any

    # ------------------------------------------------------------------------------------------ where
    @property
    def place(self) -> places.Place:
        """Where the memory is."""
        return places.CPU

    @property
    def device(self) -> places.Device:
        """Where the memory is, as a device: prints `cpu`."""
        return places.CPU_DEVICE

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is a GPU's: False."""
        return False

    def get_device(self) -> int:
        """The number of the GPU whose memory it is; -1 for the CPU's."""
        return -1

    # ------------------------------------------------------------------------------------------ how it is laid out
    @property
    def strides(self) -> list[int]:
        """How many elements apart neighbours along each dimension are.

        >>> from minipd.ops.creation import ones
        >>> ones([2, 3]).strides, ones([2, 3]).T.strides
        ([3, 1], [1, 3])
        """
        p = self.payload
        if type(p) is np.ndarray:
            return [s // p.itemsize for s in p.strides]
        return list(row_major(p.shape))

    def stride(self, dim: int | None = None) -> Any:
        """`strides`, or that of dimension `dim`.

        Raises: IndexError for a dimension that there is not.
        """
        strides = self.strides
        if dim is None:
            return strides
        if not -len(strides) <= dim < len(strides):
            raise IndexError(f"stride: dimension {dim} is out of range for {describe(self.payload)}")
        return strides[dim]

    def get_strides(self) -> list[int]:
        """The same as `strides`."""
        return self.strides

    @property
    def offset(self) -> int:
        """How many bytes after the start of the memory that it shares with others this tensor begins."""
        root = None if self.storage is None else self.storage.root
        return 0 if root is None or type(root) is not np.ndarray else _address(self.payload) - _address(root)

    def is_contiguous(self) -> bool:
        """Whether the elements are in row-major order, without gaps."""
        p = self.payload
        return type(p) is not np.ndarray or p.flags.c_contiguous

    def data_ptr(self) -> int:
        """The address of the first element."""
        return _address(self.values("data_ptr()"))  # type: ignore[attr-defined]

    def _is_shared_buffer_with(self, other: InMemory) -> bool:
        """Whether a write to one is seen in the other."""
        return self is other or self.storage is not None and self.storage is other.storage

    # ------------------------------------------------------------------------------------------ of what
    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.payload.dtype.itemsize

    def element_size(self) -> int:
        """Bytes per element."""
        return self.payload.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.payload.dtype.itemsize * self.size  # type: ignore[attr-defined]

    @property
    def layout(self) -> str:
        """Paddle's name of a dense layout."""
        return "NCHW"

    @property
    def type(self) -> VarType:
        """What kind of variable it is."""
        return VarType.DENSE_TENSOR

    def is_dense(self) -> bool:
        """Whether every element is stored: True."""
        return True

    def is_sparse(self) -> bool:
        """Whether only some elements are stored: False."""
        return False

    is_sparse_coo = is_sparse_csr = is_selected_rows = is_sparse

    def is_same_shape(self, other: InMemory) -> bool:
        """Whether both have the same shape."""
        return tuple(self.payload.shape) == tuple(other.payload.shape)


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _refusing(name: str) -> Any:
    def method(self: InMemory, *_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"{name} of {describe(self.payload)}: minipd has no sparse tensors; compute with the "
                                  "dense one")
    method.__name__ = method.__qualname__ = name
    method.__doc__ = "Of sparse tensors, which minipd does not have.  Raises NotImplementedError."
    return method


for _name in ("to_sparse_coo", "to_sparse_csr", "to_dense", "coalesce", "is_coalesced", "nnz", "indices", "crows",
              "cols", "rows", "sparse_dim", "dense_dim"):
    setattr(InMemory, _name, _refusing(_name))
