"""What a run holds in memory: an allocation hook for the executor.

Counts the buffers that a run itself allocates, each once however many views there are of it, from the instruction that
makes it to the one that lets go of the last array on it.  What the caller feeds, and the program's state, are not
counted.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["Memory"]


def root(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory that `array` views."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)      # numpy's as_strided puts something between
        if not isinstance(base, np.ndarray):
            return array
        array = base


class Memory:
    """Bytes held now (`live`) and at most so far (`peak`).

    >>> memory = Memory()
    >>> a = np.zeros(100, np.float32)
    >>> memory.hold(a); memory.hold(a[:50])
    >>> memory.release(a); memory.live
    400
    >>> memory.release(a[:50]); memory.live, memory.peak
    (0, 400)
    """

    def __init__(self) -> None:
        self.live = self.peak = 0
        self._holders: dict[int, int] = {}          # id of a buffer -> how many arrays on it are held
        self._outside: set[int] = set()

    def start(self, outside: Iterable[np.ndarray]) -> None:
        """A run begins; the buffers of `outside` are not its own."""
        self.live, self._holders = 0, {}
        self._outside = {id(root(a)) for a in outside}

    def hold(self, array: np.ndarray) -> None:
        """The run holds one more array."""
        owner = root(array)
        key = id(owner)
        if key in self._outside:
            return
        n = self._holders.get(key, 0)
        self._holders[key] = n + 1
        if n == 0:
            self.live += owner.nbytes
            self.peak = max(self.peak, self.live)

    def release(self, array: np.ndarray) -> None:
        """The run lets go of an array that it held."""
        owner = root(array)
        key = id(owner)
        n = self._holders.get(key, 0)
        if n == 1:
            del self._holders[key]
            self.live -= owner.nbytes
        elif n:
            self._holders[key] = n - 1
