"""The threads that run a kernel's tasks: numba's, which TBB lends where it is installed.

A call that wakes them costs two microseconds more than one that does not, while they still look for work, and some ten
once they sleep.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from minipd.cinn.runtime.compiler import loaded_numba

__all__ = ["allowed_threads", "task_driver"]


def allowed_threads() -> int:
    """How many threads kernels may use: NUMBA_NUM_THREADS, else one per core."""
    return loaded_numba().config.NUMBA_NUM_THREADS


@functools.cache
def task_driver() -> Callable[..., Any]:
    """numba's C function that shares the tasks of a kernel among threads, and returns when all are done.

    Its arguments: the kernel's entry and its four (see `machine`), of which begin[0] moves on by call[0] for each task;
    how many numbers apart from the tasks' there are in `count`, none; how many in `begin`, one; the number of threads.
    """
    loaded_numba()
    import llvmlite.binding as llvm
    from numba.np.ufunc.parallel import _launch_threads
    _launch_threads()
    place = ctypes.c_void_p
    size = ctypes.c_size_t
    prototype = ctypes.CFUNCTYPE(None, place, place, place, place, place, size, size, ctypes.c_int)
    return prototype(llvm.address_of_symbol("numba_parallel_for"))
