"""Random orders, as a function of a key."""

from __future__ import annotations

import numpy as np

from minipd.framework import philox

__all__: list[str] = []


def permutation(key: np.ndarray, n: int) -> np.ndarray:
    """The numbers 0 .. n-1 in the order in which n random numbers of the key's stream sort.

    >>> sorted(permutation(philox.key_of(0, "doctest"), 4).tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(philox.uniform(key, (n,), dtype=np.float64), kind="stable")
