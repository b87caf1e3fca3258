"""The enumerations of Paddle's `paddle.inference`, with its numbers."""

from __future__ import annotations

from enum import Enum

import numpy as np

from minipd.framework import dtype as dtypes

__all__ = ["DataType", "PlaceType", "PrecisionType", "get_num_bytes_of_data_type"]


class PrecisionType(Enum):
    """The precision that a model computes in."""

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


class PlaceType(Enum):
    """Where an array is."""

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class DataType(Enum):
    """What the elements of an input or a result are."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7
    BFLOAT16 = 8


def data_type_of(dtype: np.dtype) -> DataType:
    """The name that `paddle.inference` has for a dtype.

    >>> data_type_of(np.dtype("int64"))
    <DataType.INT64: 1>

    Raises: ValueError for a dtype that `paddle.inference` has no name for.
    """
    name = dtypes.to_np(dtype).name.upper()
    if name not in DataType.__members__:
        raise ValueError(f"inference: expected a dtype among {', '.join(DataType.__members__).lower()}, got {dtype}")
    return DataType[name]


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """The size of one element.

    >>> get_num_bytes_of_data_type(DataType.BFLOAT16)
    2
    """
    return dtypes.to_np(dtype.name.lower()).itemsize
