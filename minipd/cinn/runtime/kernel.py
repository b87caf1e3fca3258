"""Calling a kernel: which version, on which arrays.

A kernel has a serial and a threaded version, each built when it is first wanted.  Threads start to pay at about
64 Ki elements: waking them takes some microseconds.

Big inputs that are not contiguous, such as a slice of columns, have a version for any strides, again built when it is
wanted.  Measured with x + x of float32[2048, 2048] and one thread, against copying the input first: the left half of
the columns of a wider array 2.8 times as fast, every second column too, transposed 1.2 times.  Small ones are copied:
half a second of compiling would not pay.  So are arrays whose axes the function merges, and outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.ir.ast import STORAGE_ONLY, Function, Param, viewed
from minipd.cinn.runtime.aliases import in_place
from minipd.cinn.runtime.compiler import Compiler, loaded_numba, process_compiler

__all__ = ["Kernel", "compile_function"]

#: Elements of the largest array from which threads pay.
THREADS_FROM = 1 << 16


def compile_function(function: Function, elements: int = 0, compiler: Compiler | None = None) -> Kernel:
    """Build the kernel of a function, or load it from disk.

    Args:
        elements: of the largest array that it will be called with, as far as known: it decides which version is built
            now.  The other is built when it is first called for.
        compiler: which to use; the process's own by default.

    Raises: KernelError, if it cannot be built.
    """
    kernel = Kernel(function, compiler or process_compiler())
    kernel.version(elements)
    return kernel


class Kernel:
    """A function of the loop IR, compiled.

    Attributes:
        function: what it computes.
        source: the Python text that numba compiles.
    """

    def __init__(self, function: Function, compiler: Compiler) -> None:
        self.function = function
        self.source = numba_source(function)
        self._compiler = compiler
        self._versions: dict[tuple[bool, tuple[int, ...]], Callable[..., None]] = {}
        self._in_place: dict[tuple[tuple[int, int], ...], Kernel] = {}

    def __repr__(self) -> str:
        return f"Kernel({self.function.name}: {', '.join(self.function.comment)})"

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute: `outputs` are written in full.  One array per parameter, inputs first."""
        self.bind(inputs, outputs)()

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        """The call as a function without arguments, for arrays that are used many times: all choices are made here.

        An input may be the very array of an output (same memory, same shape) if the function reads each of its
        elements for the last time where it writes it.  An input that overlaps an output otherwise is copied first.

        Raises: TypeError for arrays that do not fit the parameters.
        """
        params = self.function.params
        if len(inputs) + len(outputs) != len(params):
            raise TypeError(f"{self!r}: expected {len(params)} arrays, got {len(inputs)} + {len(outputs)}")
        if all(y.size == 0 for y in outputs):
            return _nothing
        shared = _shared(inputs, outputs)
        if shared:
            if shared not in self._in_place:
                self._in_place[shared] = Kernel(in_place(self.function, dict(shared)), self._compiler)
            kept = [x for i, x in enumerate(inputs) if i not in dict(shared)]
            return self._in_place[shared].bind(kept, outputs)
        before: list[Callable[[], Any]] = []
        after: list[Callable[[], Any]] = []
        arrays, strided = [], []
        for number, (param, given) in enumerate(zip(params, (*inputs, *outputs), strict=True)):
            array = given
            overlaps = not param.output and any(np.may_share_memory(given, y) for y in outputs)
            if _has_strided_version(param, given) and not overlaps:
                strided.append(number)
            elif not (given.flags.c_contiguous and given.flags.aligned) or overlaps:
                array = np.empty(given.shape, given.dtype)
                if param.output:
                    after.append(functools.partial(np.copyto, given, array))
                else:
                    before.append(functools.partial(np.copyto, array, given))
            arrays.append(self._fitted(param, array, number))
        elements = max(a.size for a in arrays)
        run = functools.partial(self.version(elements, tuple(strided)), self.threads(elements), *arrays)
        return _sequence([*before, run, *after]) if before or after else run

    def _fitted(self, param: Param, array: np.ndarray, number: int) -> np.ndarray:
        """An array as numba takes it for the parameter."""
        buffer = viewed(param, array)
        if buffer.dtype != param.dtype or buffer.ndim != param.ndim:
            raise TypeError(f"{self!r}: array {number} ({param.name}): expected {param.dtype} with {param.ndim} axes, "
                            f"got {buffer.dtype} with {buffer.ndim}")
        if buffer.ndim == 0:
            buffer = buffer.reshape(1)
        if param.dtype in STORAGE_ONLY:
            buffer = buffer.view(np.uint16)
        if not param.output and not buffer.flags.writeable:
            buffer = np.asarray(_Memory(buffer))
        return buffer

    def version(self, elements: int, strided: tuple[int, ...] = ()) -> Callable[..., None]:
        """The version for arrays of so many elements; the numbers of those that are not contiguous."""
        key = self.threads(elements) > 1, strided
        if key not in self._versions:
            self._versions[key] = self._compiler.build(self.function, self.source, *key)
        return self._versions[key]

    def threads(self, elements: int) -> int:
        """How many threads to use for arrays of so many elements."""
        return allowed_threads() if elements >= THREADS_FROM else 1


def _has_strided_version(param: Param, array: np.ndarray) -> bool:
    """Whether an array that is not contiguous is read where it is."""
    return (not param.output and param.view is None and not array.flags.c_contiguous and array.flags.aligned
            and array.size >= THREADS_FROM)


def allowed_threads() -> int:
    """How many threads kernels may use: NUMBA_NUM_THREADS, else one per core."""
    return loaded_numba().config.NUMBA_NUM_THREADS


class _Memory:
    """The memory of a read-only array as a writable one.  numba has one type for both ways of access to a parameter,
    and kernels do not write to inputs."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _shared(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> tuple[tuple[int, int], ...]:
    """Pairs (i, j) of an input and an output that are the same memory."""
    places = {_place(y): j for j, y in enumerate(outputs)}
    return tuple((i, places[_place(x)]) for i, x in enumerate(inputs) if _place(x) in places)


def _place(array: np.ndarray) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _sequence(steps: list[Callable[[], Any]]) -> Callable[[], None]:
    def run() -> None:
        for step in steps:
            step()
    return run


def _nothing() -> None:
    """There is no element to write."""
