"""A caching allocator for eager results: memory that was freed is kept, and used again.

Every operator makes a new array.  Where the C library gives large blocks back to the system at once, the next array's
pages are new ones, and the system clears each at its first use: 0.2 to 0.3 ms a megabyte, far more than an addition
costs.  glibc can keep them (`man mallopt`): then its heap is the cache, with best fit and coalescing, for all threads.

Paddle's flag chooses: FLAGS_allocator_strategy=auto_growth (keep, the default) or naive_best_fit (as the C library
does by itself).  Where there is no glibc (macOS, Windows, musl) nothing happens.
"""

from __future__ import annotations

import ctypes
from typing import Any

from minipd.framework.flags import flag

__all__: list[str] = []

#: parameters of `mallopt`, from glibc's malloc.h
TRIM_THRESHOLD, MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory from now on, if the flag says so; whether it does."""
    libc = _glibc()
    if libc is None or flag("FLAGS_allocator_strategy") != "auto_growth":
        return False
    # No block has a mapping of its own, which would go when it is freed; and the top of the heap is never given back.
    return bool(libc.mallopt(MMAP_MAX, 0)) and bool(libc.mallopt(TRIM_THRESHOLD, -1))


def _glibc() -> Any:
    """The C library of this process, if it is one that can be told."""
    try:
        libc = ctypes.CDLL(None)
    except (OSError, TypeError):            # TypeError: Windows has no library without a name
        return None
    return libc if hasattr(libc, "mallopt") else None
