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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from minipd.cinn.codegen.expressions import python_name
from minipd.cinn.ir.ast import STORAGE_ONLY, Function, Param
from minipd.cinn.runtime.store import Store, machine_code
from minipd.framework.environment import cache_folder

__all__ = ["Compiler", "KernelError", "Statistics", "process_compiler"]

#: Floats may be contracted and reassociated, and zeros lose their sign.  Never nnan and ninf: NaN and inf mean in a
#: kernel what they mean in numpy.  Not arcp either: with it LLVM computes 1 / sqrt(x) by the processor's estimate and a
#: step of Newton's, which is NaN for 0 and for inf.  `numba_source` multiplies by reciprocals where they pay.
FASTMATH = {"contract", "reassoc", "nsz"}

#: Threads for the task loop and nothing else: numba's own fusions would move code between loops that depend on each
#: other through slices, which it does not see.
THREADED = {"prange": True, "fusion": False, "numpy": False, "setitem": False, "reduction": False,
            "inplace_binop": False, "comprehension": False, "stencil": False}


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
        self._built: dict[tuple[str, bool, tuple[int, ...]], Callable[..., None]] = {}
        # Ranks may be threads: two must not build one kernel at once.
        self._lock = threading.RLock()

    def build(self, function: Function, source: str, threaded: bool,
              strided: tuple[int, ...] = ()) -> Callable[..., None]:
        """The compiled function; its arguments are the number of tasks and an array per parameter.

        Args:
            strided: the numbers of the parameters whose arrays may have any strides; the others are C-contiguous.

        Raises: KernelError.
        """
        key = content_key(function, source)
        with self._lock:
            kernel = self._built.get((key, threaded, strided))
            if kernel is None:
                start = time.perf_counter()
                try:
                    kernel = self._built[key, threaded, strided] = self._build(function, source, key, threaded, strided)
                except Exception as error:
                    raise KernelError(f"no kernel could be built for {function.name} ({', '.join(function.comment)}): "
                                      f"{type(error).__name__}: {error}") from error
                self.statistics.seconds += time.perf_counter() - start
            return kernel

    def has(self, function: Function, source: str, threaded: bool, strided: tuple[int, ...] = ()) -> bool:
        """Whether `build` needs to compile nothing, as far as can be told without trying."""
        key = content_key(function, source)
        return (key, threaded, strided) in self._built or (
            self.store.folder / self._file(function, key, threaded, strided)).exists()

    def _file(self, function: Function, key: str, threaded: bool, strided: tuple[int, ...] = ()) -> str:
        version = "_".join(["threaded" if threaded else "serial", *map(str, strided)])
        return f"{python_name(function.name)}_{key}.{version}.{machine_key()}.bin"

    def _build(self, function: Function, source: str, key: str, threaded: bool,
               strided: tuple[int, ...]) -> Callable[..., None]:
        numba = loaded_numba()
        name = python_name(function.name)
        text = f"{name}_{key}.py"
        self.store.save_source(text, source)
        module = module_of(f"minipd_kernel_{key}", source, str(self.store.folder / text))
        options: dict[str, Any] = {"parallel": THREADED} if threaded else {}
        dispatcher = numba.njit(fastmath=FASTMATH, error_model="numpy", nogil=True, no_cfunc_wrapper=True,
                                **options)(getattr(module, name))
        dispatcher._cache = code = machine_code(self.store, self._file(function, key, threaded, strided))
        types = (numba_type(p, "A" if n in strided else "C") for n, p in enumerate(function.params))
        dispatcher.compile(numba.void(numba.int64, *types))
        dispatcher.disable_compile()
        if code.loaded:
            self.statistics.loaded += 1
        else:
            self.statistics.compiled += 1
        return dispatcher


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
    types = " ".join(f"{p.dtype}[{p.ndim}]" for p in function.params)
    return hashlib.sha256(f"{source}\0{types}\0{_helpers()}".encode()).hexdigest()[:20]


@functools.cache
def _helpers() -> str:
    from minipd.cinn.codegen import inline, math, scalar
    from minipd.framework import numba_setup
    texts = [inspect.getsource(module) for module in (inline, scalar, math, numba_setup)]
    return "\0".join([*texts, repr(sorted(FASTMATH)), repr(THREADED)])


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
    """A module of the source.  It must be in sys.modules: compiled code from the store names the module it is from."""
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    # Tracebacks and numba's messages show lines of the text, whether or not the file could be written.
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def numba_type(param: Param, layout: str) -> Any:
    """The type of a parameter's array, [1] for a 0-D one; layout "C" is contiguous, "A" has any strides."""
    numba = loaded_numba()
    dtype = np.dtype(np.uint16) if param.dtype in STORAGE_ONLY else param.dtype
    return numba.types.Array(numba.from_dtype(dtype), param.ndim or 1, layout)
