"""Calling a kernel: which version, on which arrays, by how many threads.

Threads start to pay at about 64 Ki elements: waking them takes some microseconds.  The same machine code serves with
threads and without.

Big inputs that are not contiguous, such as a slice of columns, have a version for any strides, again built when it is
wanted.  Measured with x + x of float32[2048, 2048] and one thread, against copying the input first: the left half of
the columns of a wider array 2.8 times as fast, every second column too, transposed 1.2 times.  Small ones are copied:
half a second of compiling would not pay.  So are arrays whose axes the function merges, and outputs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.cinn.codegen.numba_source import numba_source
from minipd.cinn.codegen.phases import phases_of
from minipd.cinn.ir.ast import Function, Param, viewed
from minipd.cinn.overwriting import overwritable
from minipd.cinn.runtime.aliases import in_place
from minipd.cinn.runtime.compiler import Compiler, process_compiler
from minipd.cinn.runtime.machine import MachineCode
from minipd.cinn.runtime.no_elements import Folded, refuse_no_elements
from minipd.cinn.runtime.plan import Plan, address
from minipd.cinn.runtime.scratch import scratch_arrays
from minipd.cinn.runtime.threads import allowed_threads

__all__ = ["Kernel", "Version", "compile_function"]

#: Elements of the largest array from which threads pay.
THREADS_FROM = 1 << 16

#: for how many different shapes a kernel keeps what their calls have in common
PLANS = 64

#: ways to pass an array
AS_IT_IS, STRIDED, COPIED = "as it is", "strided", "copied"


def compile_function(function: Function, compiler: Compiler | None = None) -> Kernel:
    """Build the kernel of a function, or load it from disk.

    compiler: which to use; the process's own by default.
    Raises: KernelError, if it cannot be built.
    """
    kernel = Kernel(function, compiler or process_compiler())
    kernel.version()
    return kernel


class Version(NamedTuple):
    """Machine code of a kernel, and for which parameters with any strides."""

    kernel: Kernel
    strided: tuple[int, ...] = ()

    def build(self) -> MachineCode:
        """Compile it, or load it from disk.  Raises: KernelError."""
        return self.kernel.version(self.strided)


class Kernel:
    """A function of the loop IR, compiled.

    Attributes:
        function: what it computes.
        source: the Python text that numba compiles.
        cut: the phases in which it runs.
        folded: the axes that must not be empty.
    """

    def __init__(self, function: Function, compiler: Compiler, folded: Sequence[Folded] = ()) -> None:
        self.function = function
        self.folded = folded
        self.source = numba_source(function)
        self.compiler = compiler
        self.cut = phases_of(function)
        self._versions: dict[tuple[int, ...], MachineCode] = {}
        self._in_place: dict[tuple[tuple[int, int], ...], Kernel] = {}
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def __repr__(self) -> str:
        return f"Kernel({self.function.name}: {', '.join(self.function.comment)})"

    @functools.cached_property
    def overwritable(self) -> dict[int, tuple[int, ...]]:
        """Number of a result -> the numbers of the inputs that it may be written over."""
        return overwritable(self.function)

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Compute: `outputs` are written in full.  One array per parameter, inputs first.

        What all calls on arrays of these shapes have in common is found out in the first.
        """
        arrays = (*inputs, *outputs)
        key = tuple([(a.shape, a.strides, a.dtype) for a in arrays])
        places = [address(a) for a in arrays]
        plan = self._plans.get(key)
        if plan is not None and plan.fits(places, len(inputs)):
            if not plan(places):
                raise self._no_memory()
            return
        kernel, left = self._in_place_of(inputs, outputs)
        if kernel is not self:
            refuse_no_elements(self.function, self.folded, arrays)
            kernel(left, outputs)
            return
        self.bind(inputs, outputs)()
        if plan is None and self._takes_as_they_are(inputs, outputs):
            if len(self._plans) == PLANS:
                self._plans.clear()
            fitted = [self._fitted(p, a, n) for n, (p, a) in enumerate(zip(self.function.params, arrays, strict=True))]
            self._plans[key] = self._plan(self.version(), fitted, self.threads(max(a.size for a in fitted)))

    def _takes_as_they_are(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
        return (not self._has_nothing_to_do(inputs, outputs) and not _shared(inputs, outputs)
                and all(way == AS_IT_IS for way in self._ways(inputs, outputs)))

    def _plan(self, code: MachineCode, fitted: Sequence[np.ndarray], tasks: int) -> Plan:
        scratch = scratch_arrays(self.cut, dict(zip((p.name for p in self.function.params), fitted, strict=True)))
        return Plan(code, self.cut, fitted, scratch, tasks, tasks)

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        """The call as a function without arguments, for arrays that are used many times: all choices are made here.

        An input may be the very array of an output (same memory, same shape) if the function reads each of its
        elements for the last time where it writes it.  An input that overlaps an output otherwise is copied first.

        Raises: TypeError for arrays that do not fit the parameters.  ValueError where a maximum of no elements is
        wanted.  KernelError if there is no kernel.
        """
        if self._has_nothing_to_do(inputs, outputs):
            return _nothing
        refuse_no_elements(self.function, self.folded, (*inputs, *outputs))
        kernel, inputs = self._in_place_of(inputs, outputs)
        return kernel._bind(inputs, outputs)

    def wanted(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Version | None:
        """The version that `bind` takes for such arrays; None if it takes none."""
        if self._has_nothing_to_do(inputs, outputs):
            return None
        kernel, inputs = self._in_place_of(inputs, outputs)
        strided = tuple(i for i, way in enumerate(kernel._ways(inputs, outputs)) if way == STRIDED)
        return Version(kernel, strided)

    def _has_nothing_to_do(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> bool:
        if len(inputs) + len(outputs) != len(self.function.params):
            raise TypeError(f"{self!r}: expected {len(self.function.params)} arrays, got {len(inputs)} + "
                            f"{len(outputs)}")
        return all(y.size == 0 for y in outputs)

    def _in_place_of(self, inputs: Sequence[np.ndarray],
                     outputs: Sequence[np.ndarray]) -> tuple[Kernel, Sequence[np.ndarray]]:
        """The kernel for arrays some of which are input and output at once, and the inputs that it takes."""
        shared = _shared(inputs, outputs)
        if not shared:
            return self, inputs
        kernel = self._in_place.get(shared)
        if kernel is None:
            kernel = self._in_place[shared] = Kernel(in_place(self.function, dict(shared)), self.compiler)
        taken = dict(shared)
        return kernel, [x for i, x in enumerate(inputs) if i not in taken]

    def _ways(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[str]:
        """How each parameter gets its array: as it is, with its strides, or as a copy."""
        ways = []
        for param, array in zip(self.function.params, (*inputs, *outputs), strict=True):
            overlaps = not param.output and any(np.may_share_memory(array, y) for y in outputs)
            if _has_strided_version(param, array) and not overlaps:
                ways.append(STRIDED)
            elif overlaps or not (array.flags.c_contiguous and array.flags.aligned):
                ways.append(COPIED)
            else:
                ways.append(AS_IT_IS)
        return ways

    def _bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Callable[[], None]:
        before: list[Callable[[], Any]] = []
        after: list[Callable[[], Any]] = []
        arrays, strided = [], []
        ways = self._ways(inputs, outputs)
        for number, (param, given, way) in enumerate(zip(self.function.params, (*inputs, *outputs), ways, strict=True)):
            array = given
            if way == STRIDED:
                strided.append(number)
            elif way == COPIED:
                array = np.empty(given.shape, given.dtype)
                if param.output:
                    after.append(functools.partial(np.copyto, given, array))
                else:
                    before.append(functools.partial(np.copyto, array, given))
            arrays.append(self._fitted(param, array, number))
        threads = self.threads(max(a.size for a in arrays))
        calls = self.calls(self.version(tuple(strided)), arrays, threads)
        return calls[0] if len(before) + len(calls) + len(after) == 1 else _sequence([*before, *calls, *after])

    def calls(self, code: MachineCode, arrays: Sequence[np.ndarray], tasks: int,
              threads: int | None = None) -> list[Callable[[], Any]]:
        """What to call in order.

        Args:
            arrays: one per parameter, as `_fitted` returns them.
            tasks: into how many a parallel loop is cut.
            threads: that work on them; as many as tasks by default.
        """
        threads = tasks if threads is None else threads
        scratch = scratch_arrays(self.cut, dict(zip((p.name for p in self.function.params), arrays, strict=True)))
        plan = Plan(code, self.cut, arrays, scratch, tasks, threads)
        data = plan.data([address(a) for a in (*arrays, *scratch)])
        run: list[Callable[[], Any]] = []
        for phase in plan.runs:
            call = functools.partial(phase, ctypes.addressof(data))
            # The addresses are good as long as these live.
            vars(call)["kept"] = plan, data, arrays, scratch
            run.append(call)
        if self._allocates:
            run.append(functools.partial(self._check, data))
        return run

    @functools.cached_property
    def _allocates(self) -> bool:
        """Whether the machine code makes arrays of its own: rows, or lines of a result on their way past the cache."""
        return "np.empty" in self.source

    def _check(self, data: Any) -> None:
        if data[0]:
            data[0] = 0
            raise self._no_memory()

    def _no_memory(self) -> MemoryError:
        return MemoryError(f"{self!r}: no memory for its own arrays")

    def _fitted(self, param: Param, array: np.ndarray, number: int) -> np.ndarray:
        """An array as the machine code takes it for the parameter."""
        buffer = viewed(param, array)
        if buffer.dtype != param.dtype or buffer.ndim != param.ndim:
            raise TypeError(f"{self!r}: array {number} ({param.name}): expected {param.dtype} with {param.ndim} axes, "
                            f"got {buffer.dtype} with {buffer.ndim}")
        return buffer if buffer.ndim else buffer.reshape(1)

    def version(self, strided: tuple[int, ...] = ()) -> MachineCode:
        """The machine code of a version, built when it is first asked for.  Raises: KernelError."""
        if strided not in self._versions:
            self._versions[strided] = self.compiler.build(self.function, self.source, strided)
        return self._versions[strided]

    def threads(self, elements: int) -> int:
        """How many threads to use if the largest array has so many elements."""
        return allowed_threads() if elements >= THREADS_FROM else 1


def _has_strided_version(param: Param, array: np.ndarray) -> bool:
    """Whether an array that is not contiguous is read where it is."""
    return (not param.output and param.view is None and not array.flags.c_contiguous and array.flags.aligned
            and array.size >= THREADS_FROM)


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
