"""Initializers whose spread depends on how many inputs an output sums over: Xavier's and Kaiming's."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.dim import prod
from minipd.framework.tensor import Tensor
from minipd.nn.initializer.base import Initializer, Window
from minipd.ops import random as draws

__all__ = ["KaimingNormal", "KaimingUniform", "XavierNormal", "XavierUniform", "calculate_gain"]


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


#: of functions that leave the variance as it is, an int, as Paddle prints it
_GAINS = {**dict.fromkeys(("sigmoid", "linear", "conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv2d_transpose",
                           "conv3d_transpose"), 1),
          "tanh": 5.0 / 3.0, "relu": math.sqrt(2.0), "selu": 3.0 / 4.0}


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
