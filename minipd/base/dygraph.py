"""`paddle.base.dygraph`: eager mode, for the length of a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from minipd.framework.mode import disable_static, enable_static, in_dynamic_mode

__all__ = ["guard"]


@contextlib.contextmanager
def guard(place: Any = None) -> Iterator[None]:
    """`with guard():` in eager mode, whatever `enable_static` has asked for.

    Raises: ValueError for a place but the CPU.
    """
    before = in_dynamic_mode()
    disable_static(place)
    try:
        yield
    finally:
        if not before:
            enable_static()
