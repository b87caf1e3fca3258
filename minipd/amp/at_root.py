"""What Paddle has of amp at its root."""

from __future__ import annotations

from typing import Any

from minipd.amp.auto_cast import auto_cast

__all__ = ["autocast"]


def autocast(device_type: Any = None, dtype: str = "float16", enabled: bool = True, cache_enabled: bool = True) -> Any:
    """`auto_cast` in level O1, under another signature.   device_type, cache_enabled: accepted, without effect.

    >>> from minipd.ops.creation import ones
    >>> from minipd.ops.linalg import matmul
    >>> with autocast("cpu", dtype="bfloat16"):
    ...     matmul(ones([2, 2]), ones([2, 2])).dtype
    paddle.bfloat16
    """
    return auto_cast(enable=enabled, dtype=dtype)
