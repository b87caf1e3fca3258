"""What fits into memory: a size that nobody can mean is refused at once and in words."""

from __future__ import annotations

import math
import os
from typing import Any

from minipd.framework.dim import is_symbolic

__all__: list[str] = []

#: the bytes of memory that this machine has
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_room(what: str, shape: tuple, itemsize: int = 1, asked: Any = None) -> None:
    """Raise MemoryError if a tensor of this shape cannot be held.

    asked: the error of an attempt that ran out of memory: then it cannot, however much there is in all.

    >>> require_room("zeros", (2, 3))
    >>> require_room("zeros", (1 << 50,), 4)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    MemoryError: zeros: expected a result that fits into memory (...), got shape [1125899906842624], of 4194304 GiB
    """
    if any(map(is_symbolic, shape)):
        return
    size = math.prod(shape) * itemsize
    if size > MEMORY or isinstance(asked, MemoryError):
        raise MemoryError(f"{what}: expected a result that fits into memory ({MEMORY >> 30} GiB in all), got shape "
                          f"{list(shape)}, of {size >> 30} GiB")
