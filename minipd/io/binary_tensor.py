"""Paddle's binary form of one tensor (`save(..., use_binary_format=True)`).

    uint32 0   uint64 0   uint32 0      versions, and no levels of detail
    int32 n    n bytes                  protobuf: field 1 the dtype's code, field 2 each dimension
    the values
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from minipd.framework import dtype as dtypes

__all__: list[str] = []

HEAD = bytes(16)
DTYPE, DIM = 8, 16          # the keys of varint fields 1 and 2
#: what stands before the description, and the longest description: that of more dimensions than numpy has
BEFORE, LONGEST = 20, 1024


class Description(NamedTuple):
    """What a tensor's values are."""

    dtype: np.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def preamble(array: np.ndarray) -> bytes:
    """Everything before the values."""
    description = b"".join([bytes([DTYPE]), _varint(dtypes.of(array.dtype).code),
                            *(bytes([DIM]) + _varint(n) for n in array.shape)])
    return HEAD + struct.pack("<i", len(description)) + description


def encode(array: np.ndarray) -> bytes:
    """
    >>> encode(np.array([1, 2], "uint8")).hex(" ", -4)
    '00000000 00000000 00000000 00000000 04000000 08141002 0102'
    """
    return preamble(array) + array.tobytes()


def decode(data: bytes) -> np.ndarray:
    """The array; ValueError for something else."""
    n = description_length(data[:BEFORE])
    found, values = described(data[BEFORE:BEFORE + n]), data[BEFORE + n:]
    if n > len(data) - BEFORE or found.nbytes != len(values):
        raise ValueError(f"{len(values)} bytes for shape {list(found.shape)} and dtype {found.dtype}")
    return np.frombuffer(values, found.dtype).reshape(found.shape).copy()


def description_length(data: bytes) -> int:
    """How many bytes the description has, by the first `BEFORE` bytes; ValueError for something else."""
    if len(data) < BEFORE or data[:len(HEAD)] != HEAD:
        raise ValueError("no head of a binary tensor")
    n, = struct.unpack_from("<i", data, len(HEAD))
    if not 0 <= n <= LONGEST:
        raise ValueError(f"a description of {n} bytes")
    return n


def described(data: bytes) -> Description:
    """The description; ValueError for something else, and for sizes that no array has."""
    code, shape = None, []
    fields = list(_varints(data))
    if len(fields) % 2:
        raise ValueError("a description that was cut short")
    for key, value in zip(fields[::2], fields[1::2], strict=True):
        if key == DTYPE:
            code = value
        elif key == DIM:
            shape.append(value)
        else:
            raise ValueError(f"an unknown field {key}")
    if code is None:
        raise ValueError(f"a description without a dtype (its field {DTYPE >> 3})")
    dtype = next((t.np for t in dtypes.ALL if t.code == code), None)
    if dtype is None:
        raise ValueError(f"the dtype with code {code}, which minipd does not have")
    if len(shape) > 64 or max(shape, default=0) >= 1 << 63:
        raise ValueError(f"a shape of {len(shape)} dimensions, the largest {max(shape)}")
    return Description(dtype, tuple(shape))


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def _varints(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
