"""Paddle's binary form of one tensor (`save(..., use_binary_format=True)`).

    uint32 0   uint64 0   uint32 0      versions, and no levels of detail
    int32 n    n bytes                  protobuf: field 1 the dtype's code, field 2 each dimension
    the values
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np

from minipd.framework import dtype as dtypes

__all__: list[str] = []

HEAD = bytes(16)
DTYPE, DIM = 8, 16          # the keys of varint fields 1 and 2


def encode(array: np.ndarray) -> bytes:
    """
    >>> encode(np.array([1, 2], "uint8")).hex(" ", -4)
    '00000000 00000000 00000000 00000000 04000000 08141002 0102'
    """
    description = b"".join([bytes([DTYPE]), _varint(dtypes.of(array.dtype).code),
                            *(bytes([DIM]) + _varint(n) for n in array.shape)])
    return HEAD + struct.pack("<i", len(description)) + description + array.tobytes()


def decode(data: bytes) -> np.ndarray:
    """The array; ValueError for something else."""
    if data[:16] != HEAD or len(data) < 20:
        raise ValueError("no head of a binary tensor")
    n, = struct.unpack_from("<i", data, 16)
    if not 0 <= n <= len(data) - 20:
        raise ValueError("a description that is longer than the file")
    code, shape = None, []
    fields = _varints(data[20:20 + n])
    for key, value in zip(fields, fields, strict=True):
        if key == DTYPE:
            code = value
        elif key == DIM:
            shape.append(value)
        else:
            raise ValueError(f"an unknown field {key}")
    dtype = next((t.np for t in dtypes.ALL if t.code == code), None)
    values = data[20 + n:]
    if dtype is None or math.prod(shape) * dtype.itemsize != len(values):
        raise ValueError(f"{len(values)} bytes for shape {shape} and the dtype with code {code}")
    return np.frombuffer(values, dtype).reshape(shape).copy()


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
