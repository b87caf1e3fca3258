"""Initializers that draw every element alike: uniform, normal, and normal without its tails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.nn.initializer.base import Initializer, Window
from minipd.ops import random as draws
from minipd.ops.cast import cast
from minipd.ops.math import maximum, minimum
from minipd.ops.special import erfinv

__all__ = ["Normal", "TruncatedNormal", "Uniform"]


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


class TruncatedNormal(Initializer):
    """Normally distributed, but only values from a to b.

    Even draws between the probabilities of a and b, sent through the inverse of the distribution function.
    Raises: ValueError unless a < b.
    """

    def __init__(self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, name: str | None = None):
        if not a < b or not std > 0:
            raise ValueError(f"TruncatedNormal: expected a < b and std > 0, got a={a}, b={b}, std={std}")
        self.mean, self.std, self.a, self.b = mean, std, a, b

    def values(self, key: Tensor, shape: tuple, dtype: Any, window: Window | None = None) -> Tensor:
        root = self.std * math.sqrt(2.0)
        low, high = (math.erf((end - self.mean) / root) for end in (self.a, self.b))
        wide = np.dtype(np.float64)             # towards the tails, neighbouring draws lie far apart
        x = erfinv(draws.Uniform(key, shape=shape, dtype=wide, min=low, max=high, window=window)) * root + self.mean
        return cast(minimum(maximum(x, self.a), self.b), dtypes.of(dtype))
