"""Building kernels: source text, numba, and the store of what has been built before."""

from __future__ import annotations

import functools
import hashlib
import inspect
import linecache
import platform
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np

from minipd.cinn.codegen.expressions import python_name
from minipd.cinn.codegen.phases import phases_of
from minipd.cinn.ir.ast import STORAGE_ONLY, Function
from minipd.cinn.runtime.machine import MachineCode, compiled, loaded
from minipd.cinn.runtime.store import Store
from minipd.framework.environment import cache_folder
from minipd.framework.files import reason

__all__ = ["Compiler", "KernelError", "Statistics", "process_compiler"]

class KernelError(Exception):
    """A function of the loop IR that no kernel could be built for; the message names it and says why.

    Whoever asked for the kernel computes the same with what the function was made from.
    """


@dataclass
class Statistics:
    """What building kernels has cost: how many were compiled, how many loaded from disk, seconds for both."""

    compiled: int = 0
    loaded: int = 0
    seconds: float = 0.0


class Compiler:
    """Builds functions for this process; what it has built it keeps, in memory and in its store.

    Attributes:
        store: the kernels on disk.
        statistics: what building has cost so far.
    """

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.statistics = Statistics()
        self._built: dict[tuple[str, tuple[int, ...]], MachineCode] = {}
        # Ranks may be threads: two must not build one kernel at once.
        self._lock = threading.RLock()

    def build(self, function: Function, source: str, strided: tuple[int, ...] = ()) -> MachineCode:
        """The function's machine code.

        Args:
            strided: the numbers of the parameters whose arrays may have any strides; the others are C-contiguous.

        Raises: KernelError.
        """
        key = content_key(function, source)
        with self._lock:
            code = self._built.get((key, strided))
            if code is None:
                start = time.perf_counter()
                try:
                    code = self._built[key, strided] = self._build(function, source, key, strided)
                except Exception as error:
                    raise KernelError(f"no kernel could be built for {function.name} ({', '.join(function.comment)}): "
                                      f"{type(error).__name__}: {error}") from error
                self.statistics.seconds += time.perf_counter() - start
            return code

    def has(self, function: Function, source: str, strided: tuple[int, ...] = ()) -> bool:
        """Whether `build` needs to compile nothing, as far as can be told without trying."""
        key = content_key(function, source)
        return (key, strided) in self._built or (self.store.folder / self._file(function, key, strided)).exists()

    def _file(self, function: Function, key: str, strided: tuple[int, ...]) -> str:
        version = "_".join(["strided", *map(str, strided)]) if strided else "contiguous"
        return f"{python_name(function.name)}_{key}.{version}.{machine_key()}.bin"

    def _build(self, function: Function, source: str, key: str, strided: tuple[int, ...]) -> MachineCode:
        loaded_numba()
        name, file = python_name(function.name), self._file(function, key, strided)
        text = f"{name}_{key}.py"
        self.store.save_source(text, source)
        payload = self.store.load(file)
        if payload is not None:
            try:
                code = loaded(payload)
            except Exception as error:                      # written by another build of numba or LLVM
                self.store.warn(f"the compiled kernel {self.store.folder / file} cannot be loaded: {reason(error)}.  "
                                "It is compiled anew")
            else:
                self.statistics.loaded += 1
                return code
        module = module_of(f"minipd_kernel_{key}", source, str(self.store.folder / text))
        arrays = [(dtype, ndim, "A" if n in strided else "C") for n, (dtype, ndim) in enumerate(_arrays(function))]
        code = compiled(getattr(module, name), arrays, phases=len(phases_of(function).phases) > 1)
        self.store.save(file, code.to_bytes())
        self.statistics.compiled += 1
        return code


@functools.cache
def process_compiler(folder: Path | None = None) -> Compiler:
    """The compiler of this process for a folder, by default the one for kernels in the user's cache."""
    return Compiler(folder or cache_folder() / "kernels")


def loaded_numba() -> ModuleType:
    """numba, set up; only programs with kernels pay for importing it."""
    from minipd.framework import numba_setup
    return numba_setup.numba


def content_key(function: Function, source: str) -> str:
    """What a kernel depends on apart from the machine: its text, the types of its arrays, which the text need not show
    (a copy reads alike for all), the functions that it calls, the flags."""
    types = " ".join(f"{dtype}[{ndim}]" for dtype, ndim in _arrays(function))
    return hashlib.sha256(f"{source}\0{types}\0{_helpers()}".encode()).hexdigest()[:20]


def _arrays(function: Function) -> list[tuple[np.dtype, int]]:
    """The types of what the machine code takes: parameters, then scratch arrays.  Arrays without axes come with one,
    those of dtypes that numba does not have as their bits."""
    found = [(p.dtype, p.ndim) for p in function.params]
    found += [(a.dtype, len(a.shape)) for a in phases_of(function).scratch]
    return [(np.dtype(np.uint16) if dtype in STORAGE_ONLY else dtype, ndim or 1) for dtype, ndim in found]


@functools.cache
def _helpers() -> str:
    from minipd.cinn.codegen import inline, math, scalar
    from minipd.cinn.runtime import machine
    from minipd.framework import numba_setup
    return "\0".join(inspect.getsource(module) for module in (inline, scalar, math, machine, numba_setup))


@functools.cache
def machine_key() -> str:
    """What machine code depends on: the processor, Python and the compiler's versions."""
    import llvmlite
    import llvmlite.binding as llvm
    numba = loaded_numba()
    parts = (platform.machine(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), sys.version,
             np.__version__, numba.__version__, llvmlite.__version__, str(numba.config.CPU_NAME),
             str(numba.config.CPU_FEATURES), str(numba.config.OPT))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def module_of(name: str, source: str, path: str) -> ModuleType:
    """A module of the source."""
    module = ModuleType(name)
    module.__file__ = path
    # Tracebacks and numba's messages show lines of the text, whether or not the file could be written.
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), module.__dict__)
    return module
