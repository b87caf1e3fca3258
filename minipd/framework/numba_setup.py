"""numba, set up once for the process: every module that compiles with it takes it from here.

numba reads what it needs to know about the processor when it compiles for the first time, whoever asks; after that it
is too late to say more.  Importing numba takes a quarter of a second, so import this module where it is needed, late.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

__all__: list[str] = []


def _preload_tbb() -> None:
    """numba finds TBB's library only where the system's loader looks, or if it is loaded already.  Without TBB its
    threads end the process when two Python threads call kernels at once."""
    library = Path(sys.prefix, "lib", "libtbb.so.12")
    if library.exists():
        try:
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        except OSError:
            pass                                        # numba then takes OpenMP


def _wide_features(features: str) -> str:
    """The processor's features with 512-bit vectors where they cost nothing.

    LLVM prefers 256 bits on all processors, since the first with 512 lowered their clock for them; those that also have
    bfloat16 instructions do not.  A softmax in the cache takes 0.72 of the time.

    >>> _wide_features("+avx2,+avx512f,-avx512bf16")
    '+avx2,+avx512f,-avx512bf16'
    >>> _wide_features("+avx512f,+avx512bf16")
    '+avx512f,+avx512bf16,-prefer-256-bit'
    """
    return features + ",-prefer-256-bit" if "+avx512bf16" in features.split(",") else features


def name_runtime() -> None:
    """Tell LLVM where numba's runtime is, before machine code is loaded: that calls it by name, and of an unknown name
    LLVM makes the end of the process.

    numba does this as part of what compiling needs, with functions that it compiles: then 30 MB more of LLVM itself are
    in memory.
    """
    from numba.core.runtime import nrt
    runtime: Any = nrt
    for name, place in runtime._nrt.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", place)


_preload_tbb()

import llvmlite.binding as llvm  # noqa: E402  (TBB comes first)
import numba  # noqa: E402

config: Any = numba.config
if config.CPU_NAME is None and config.CPU_FEATURES is None:         # not set by the user
    config.CPU_NAME = llvm.get_host_cpu_name()
    config.CPU_FEATURES = _wide_features(llvm.get_host_cpu_features().flatten())

# Before a vectorized loop LLVM compares every array written with every other, since they might overlap.  It gives up on
# the loop where that takes more than 8 comparisons, as in AdamW with its four inputs and three outputs.
llvm.set_option("minipd", "--runtime-memory-check-threshold=128")
