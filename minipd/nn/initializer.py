"""Initializers: the first values of a parameter, as a pure function of a key and of where an element lies.

`values(key, shape, dtype, window)` computes any part of a parameter: `shape` is the part's, and `window` = (global
shape, offsets) says where it lies, None for the whole.  The part equals the same part of the whole bit by bit, so every
mesh starts from the same numbers, and no rank ever needs more than its shard.
"""

from __future__ import annotations

import math
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.ops import random as draws
from minipd.ops.creation import Full, to_tensor
from minipd.ops.slicing import SetValue, Slice

__all__ = ["Assign", "Constant", "Initializer", "KaimingNormal", "KaimingUniform", "Normal", "Uniform", "XavierNormal",
           "XavierUniform", "calculate_gain"]

Window = tuple[tuple[int, ...], tuple[int, ...]]


class Initializer:
    """The base of all initializers.  A subclass defines `values`."""

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        """The values of a part (see the module); `key`, int64[2], names the draw, dtype is numpy's."""
        raise NotImplementedError(f"{type(self).__name__}: an initializer defines values(key, shape, dtype, window)")

    def __call__(self, param: Tensor, block: Any = None) -> None:
        """Give an existing parameter new first values."""
        key = Tensor(current().rng.init_key())
        param.set_value(self.values(key, tuple(param.payload.shape), param.payload.dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


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
        whole, offsets = window or (shape, (0,) * len(shape))
        if tuple(self.value.shape) != tuple(whole):
            raise ValueError(f"Assign: expected values of the parameter's shape {list(whole)}, got "
                             f"{list(self.value.shape)}")
        part = self.value.astype(dtypes.of(dtype))
        if not shape or window is None:
            return part.clone()
        return Slice(part, axes=tuple(range(len(shape))), starts=tuple(offsets),
                     ends=tuple(o + n for o, n in zip(offsets, shape, strict=True))).clone()


class Uniform(Initializer):
    """Evenly spread in [low, high)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name: str | None = None):
        self.low, self.high = low, high

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        return draws.Uniform(key, shape=shape, dtype=dtype, min=self.low, max=self.high, window=window)


class Normal(Initializer):
    """Normally distributed."""

    def __init__(self, mean: float = 0.0, std: float = 1.0, name: str | None = None):
        self.mean, self.std = mean, std

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        return draws.Gaussian(key, shape=shape, dtype=dtype, mean=self.mean, std=self.std, window=window)


def fans(shape: tuple) -> tuple[int, int]:
    """(fan in, fan out): how many inputs an output sums over, and the reverse.

    [in, out] for matrices; for convolutions, [out, in, kernel...], each times the size of the kernel.

    >>> fans((3, 4)), fans((8, 3, 5, 5)), fans((7,)), fans(())
    ((3, 4), (75, 200), (7, 7), (1, 1))
    """
    if len(shape) < 2:
        n = shape[0] if shape else 1
        return n, n
    if len(shape) == 2:
        return shape[0], shape[1]
    kernel = prod(shape[2:])
    return shape[1] * kernel, shape[0] * kernel


class _Fans(Initializer):
    """Initializers whose spread depends on the fans of the *global* shape."""

    uniform: bool
    fan_in: float | None = None
    fan_out: float | None = None

    def std(self, fan_in: float, fan_out: float) -> float:
        """The standard deviation wanted."""
        raise NotImplementedError

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        fan_in, fan_out = fans(window[0] if window else shape)
        std = self.std(self.fan_in or fan_in or 1, self.fan_out or fan_out or 1)
        if self.uniform:
            limit = math.sqrt(3.0) * std            # the variance of [-a, a) is a^2 / 3
            return draws.Uniform(key, shape=shape, dtype=dtype, min=-limit, max=limit, window=window)
        return draws.Gaussian(key, shape=shape, dtype=dtype, mean=0.0, std=std, window=window)


class XavierUniform(_Fans):
    """Variance gain^2 * 2 / (fan_in + fan_out), evenly spread.  (Glorot, Bengio 2010.)"""

    uniform = True

    def __init__(self, fan_in: float | None = None, fan_out: float | None = None, gain: float = 1.0,
                 name: str | None = None):
        self.fan_in, self.fan_out, self.gain = fan_in, fan_out, gain

    def std(self, fan_in: float, fan_out: float) -> float:
        return self.gain * math.sqrt(2.0 / (fan_in + fan_out))


class XavierNormal(XavierUniform):
    """Variance gain^2 * 2 / (fan_in + fan_out), normally distributed."""

    uniform = False


class KaimingUniform(_Fans):
    """Variance gain^2 / fan_in (or fan_out), evenly spread; the gain is the nonlinearity's.  (He et al. 2015.)"""

    uniform = True

    def __init__(self, fan_in: float | None = None, negative_slope: float = 0.0, nonlinearity: str = "relu",
                 mode: str = "fan_in"):
        if mode not in ("fan_in", "fan_out"):
            raise ValueError(f"{type(self).__name__}: expected mode 'fan_in' or 'fan_out', got {mode!r}")
        self.fan_in, self.negative_slope, self.nonlinearity, self.mode = fan_in, negative_slope, nonlinearity, mode

    def std(self, fan_in: float, fan_out: float) -> float:
        fan = fan_in if self.mode == "fan_in" else fan_out
        return calculate_gain(self.nonlinearity, self.negative_slope) / math.sqrt(fan)


class KaimingNormal(KaimingUniform):
    """Variance gain^2 / fan_in (or fan_out), normally distributed."""

    uniform = False


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


_GAINS = {"sigmoid": 1.0, "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "tanh": 5.0 / 3.0,
          "relu": math.sqrt(2.0), "selu": 3.0 / 4.0}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor on the spread of weights that keeps the variance through a nonlinearity.

    param: the negative slope of leaky_relu (0.01 unless given).
    Raises: ValueError for an unknown nonlinearity.

    >>> calculate_gain("tanh"), round(calculate_gain("leaky_relu", 1.0), 12)
    (1.6666666666666667, 1.0)
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1.0 + slope * slope))
    if nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain: expected one of {', '.join(sorted([*_GAINS, 'leaky_relu']))}, got "
                         f"{nonlinearity!r}")
    return _GAINS[nonlinearity]
