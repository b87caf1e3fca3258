"""What calls of a kernel on arrays of the same shapes, strides and dtypes have in common: all but the addresses.

    data     a place for errors, then numba's structure of each array, parameters first, then scratch
    begin    [0], the number of the first task
    phases   (count, call) of each: how many tasks an entry does, and what it is told (`machine`)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.cinn.codegen.phases import Phases
from minipd.cinn.runtime.machine import MachineCode, array_words
from minipd.cinn.runtime.threads import task_driver

__all__ = ["Plan", "address"]

_ENTRY = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)
#: which word of numba's structure of an array is its address
_PLACE = 4
#: the first field of numpy's C structure of an array, behind that of a Python object
_POINTER = ctypes.c_size_t


class Plan:
    """A call of machine code, without addresses.  Threads of Python may use one at once.

    Args:
        arrays: one per parameter, like those that will come.  scratch: likewise.
        tasks: into how many a parallel loop is cut.  threads: that work on them.
    """

    def __init__(self, code: MachineCode, cut: Phases, arrays: Sequence[np.ndarray], scratch: Sequence[np.ndarray],
                 tasks: int, threads: int) -> None:
        self.code = code
        self.scratch = [(a.shape, a.dtype) for a in scratch]
        self.sizes = [a.nbytes for a in arrays]
        self.alignments = [a.itemsize for a in arrays]
        words, self.at = [0], list[int]()
        for array in (*arrays, *scratch):
            self.at.append(len(words) + _PLACE)
            words += array_words(array)
        self.words = (ctypes.c_int64 * len(words))(*words)
        phases = [(n, tasks if phase.parallel else 1) for n, phase in enumerate(cut.phases)]
        self.numbers = np.array([0, *(w for n, count in phases for w in (count, 1, n, count))], np.int64)
        begin = self.numbers.ctypes.data
        self.runs = [self._run(begin, begin + 8 + 32 * n, count, threads) for n, count in phases]

    def _run(self, begin: int, at: int, count: int, threads: int) -> Callable[[int], object]:
        """A phase, as a function of where `data` is."""
        address = self.code.address
        if threads > 1 and count > 1:
            driver = task_driver()
            return lambda data: driver(address, begin, at, at + 8, data, 0, 1, threads)
        entry = _ENTRY(address)
        return lambda data: entry(begin, at, at + 8, data)

    def fits(self, places: Sequence[int], inputs: int) -> bool:
        """Whether contiguous arrays at these addresses may be taken as they are: aligned, and no input in an output."""
        for place, alignment in zip(places, self.alignments, strict=True):
            if place % alignment:
                return False
        sizes = self.sizes
        for j in range(inputs, len(places)):
            low, high = places[j], places[j] + sizes[j]
            for i in range(inputs):
                if places[i] < high and low < places[i] + sizes[i]:
                    return False
        return True

    def __call__(self, places: Sequence[int]) -> bool:
        """Run on arrays at these addresses.  Returns whether all went well: False where memory was wanting."""
        scratch = [np.empty(shape, dtype) for shape, dtype in self.scratch]
        data = self.data([*places, *map(address, scratch)])
        where = ctypes.addressof(data)
        for run in self.runs:
            run(where)
        return not data[0]

    def data(self, places: Sequence[int]) -> Any:
        """What the machine code reads, for arrays and scratch at these addresses; its first number tells of errors."""
        data = type(self.words).from_buffer_copy(self.words)
        for at, place in zip(self.at, places, strict=True):
            data[at] = place
        return data


def address(array: np.ndarray) -> int:
    """Where an array's first element is.

    >>> x = np.zeros(3)
    >>> address(x) == x.ctypes.data, address(x[1:]) - address(x)
    (True, 8)
    """
    if type(array) is np.ndarray:           # numpy's macro PyArray_DATA; a fifth of the time of the dict below
        return _POINTER.from_address(id(array) + object.__basicsize__).value
    return array.__array_interface__["data"][0]
