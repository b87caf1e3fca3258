"""Initializers that draw nothing: constants, given values, patterns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.nn.initializer.base import Initializer, Whole, Window, part_of
from minipd.ops.creation import Full, to_tensor
from minipd.ops.slicing import SetValue

__all__ = ["Assign", "Bilinear", "Constant", "Dirac"]


class Constant(Initializer):
    """`value` everywhere."""

    def __init__(self, value: float = 0.0):
        self.value = value

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        return Full(shape=shape, value=self.value, dtype=dtype)


class Assign(Initializer):
    """Given values: an array, nested lists, or a Tensor.  ValueError where the parameter has another shape."""

    def __init__(self, value: Any, name: str | None = None):
        self.value = to_tensor(value)

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        whole = window[0] if window else shape
        if tuple(self.value.shape) != tuple(whole):
            raise ValueError(f"Assign: expected values of the parameter's shape {list(whole)}, got "
                             f"{list(self.value.shape)}")
        values = self.value.astype(dtypes.of(dtype))
        return values.clone() if window is None else part_of(values, shape, window[1])


class Dirac(Whole):
    """Convolutions that pass on what comes in: output channel i is input channel i, as long as there are such.

    For weights [out, in / groups, kernel...]: 1 at the centre of the kernel from i to i, within each group.
    Raises: ValueError for other shapes, or if `groups` does not divide the output channels.

    >>> Dirac().whole(None, (2, 1, 3), np.dtype("float32")).tolist()
    [[[0.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]]]
    """

    def __init__(self, groups: int = 1, name: str | None = None):
        if not isinstance(groups, int) or groups < 1:
            raise ValueError(f"Dirac: expected a number of groups from 1 on, got {groups!r}")
        self.groups = groups

    def whole(self, key: Tensor, shape: tuple, dtype: Any) -> Tensor:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"Dirac: expected the weight of a convolution, 3 to 5 dimensions, got shape {list(shape)}")
        if shape[0] % self.groups:
            raise ValueError(f"Dirac: expected output channels that {self.groups} groups divide, got {shape[0]}")
        per_group = shape[0] // self.groups
        values = np.zeros(shape, dtype)
        channel = np.arange(min(per_group, shape[1]))
        for group in range(self.groups):
            values[(group * per_group + channel, channel, *(k // 2 for k in shape[2:]))] = 1
        return Tensor(values)


class Bilinear(Whole):
    """Transposed convolutions that interpolate linearly: a pyramid in each square kernel [out, in, k, k].

    For a stride of f, the kernel has size 2 f - f % 2.
    Raises: ValueError for other shapes.

    >>> Bilinear().whole(None, (1, 1, 3, 3), np.dtype("float32")).tolist()
    [[[[0.0625, 0.1875, 0.1875], [0.1875, 0.5625, 0.5625], [0.1875, 0.5625, 0.5625]]]]
    """

    def whole(self, key: Tensor, shape: tuple, dtype: Any) -> Tensor:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear: expected the weight of a 2-D convolution with a square kernel, got shape "
                             f"{list(shape)}")
        f = math.ceil(shape[3] / 2)
        centre = (2 * f - 1 - f % 2) / (2 * f)
        slope = 1 - np.abs(np.arange(shape[3]) / f - centre)
        return Tensor(np.broadcast_to(np.outer(slope, slope), shape).astype(dtype))


class ZeroRow(Initializer):
    """What another initializer gives, with zeros in one row (the padding of an embedding)."""

    def __init__(self, other: Initializer, row: int):
        self.other, self.row = other, row

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        x = self.other.values(key, shape, dtype, window)
        row = self.row - (window[1][0] if window else 0)
        if not 0 <= row < shape[0]:
            return x
        return SetValue(x, 0.0, axes=(0,), starts=(row,), ends=(row + 1,), strides=(1,))
