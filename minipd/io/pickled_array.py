"""numpy's arrays and dtypes out of a pickle, by hand: what they say of themselves is checked, not believed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

__all__: list[str] = []

NUMBERS = re.compile("[biufc][0-9]{1,2}")


class Refused(ValueError):
    """The file asks for something that is not plain data, or is no whole pickle."""


def dtype_of(text: Any, state: Any) -> np.dtype:
    """numpy.dtype(text) with byte order: numbers only, no objects and no records."""
    order = state[1]
    if not isinstance(text, str) or NUMBERS.fullmatch(text) is None or order not in ("<", ">", "|", "="):
        raise Refused(f"an array of dtype {text!r}")
    return np.dtype(text).newbyteorder(order)


def array_of(state: Any) -> np.ndarray:
    """What numpy's own arrays say of themselves: version, shape, dtype, whether column-major, and the bytes."""
    _, shape, dtype, column_major, data = state
    return from_bytes(shape, dtype, "F" if column_major else "C", data)


def from_bytes(shape: Any, dtype: Any, order: Any, data: Any) -> np.ndarray:
    if not isinstance(dtype, np.dtype) or not isinstance(data, (bytes, bytearray)):
        raise Refused(f"an array of {type(dtype).__name__} and {type(data).__name__}")
    if not isinstance(shape, tuple) or any(type(n) is not int or n < 0 for n in shape) or order not in ("C", "F"):
        raise Refused(f"an array of shape {shape!r}")
    if math.prod(shape) * dtype.itemsize != len(data):
        raise Refused(f"{len(data)} bytes for an array of shape {list(shape)} and dtype {dtype}")
    array = np.frombuffer(data, dtype).reshape(shape, order=order)
    return array.astype(dtype.newbyteorder("=").str, order="C", copy=True)
