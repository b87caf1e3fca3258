"""`assert`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def Assert(test: Any, message: Callable[[], Any] | None = None) -> None:
    if not test:
        raise AssertionError(*(() if message is None else (message(),)))
