"""Random orders and choices of sample numbers: functions of a key.

A generator that draws as Paddle does (`Generator.draw_as_paddle`) takes them from where Paddle takes them: choices from
numpy's global generator, orders from `randperm`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import philox
from minipd.framework.rank import current
from minipd.ops.random import randperm

__all__: list[str] = []


def permutation(key: np.ndarray, n: int) -> np.ndarray:
    """The numbers 0 .. n-1 in the order in which n random numbers of the key's stream sort.

    >>> sorted(permutation(philox.key_of(0, "doctest"), 4).tolist())
    [0, 1, 2, 3]
    """
    if current().rng.streams:
        return randperm(n).numpy()
    return np.argsort(philox.uniform(key, (n,), dtype=np.float64), kind="stable")


def choice(key: np.ndarray, n: int, size: int, replacement: bool, weights: Any = None) -> list[int]:
    """`size` of the numbers 0 .. n-1, each as often as it may come; with `weights`, float [n], in proportion to them.

    >>> choice(philox.key_of(0, "doctest"), 2, 3, True, np.array([0.0, 1.0]))
    [1, 1, 1]
    """
    if current().rng.streams:
        p = None if weights is None else weights / weights.sum()
        return np.random.choice(n, size, replacement, p).tolist()
    if weights is None:
        return (philox.integers(key, (size,), 0, n) if replacement else permutation(key, n)[:size]).tolist()
    if replacement:
        ends = np.cumsum(weights)
        draws = philox.uniform(key, (size,), dtype=np.float64) * ends[-1]
        return np.searchsorted(ends, draws, "right").tolist()
    # The earliest of events that happen at random times, each at its own rate (Efraimidis, Spirakis 2006).
    waits = -np.log1p(-philox.uniform(key, weights.shape, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(weights > 0, waits / weights, np.inf)
    return np.argsort(times, kind="stable")[:size].tolist()
