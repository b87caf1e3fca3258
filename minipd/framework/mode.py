"""The switches that Paddle has for its two modes.

minipd always computes eagerly; programs are traced (`jit.to_static`).  A script that asks for static mode is told that
it is on, and what it computes it computes at once.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.place import check_device
from minipd.framework.rank import current

__all__ = ["disable_signal_handler", "disable_static", "enable_static", "in_dynamic_mode"]


def in_dynamic_mode() -> bool:
    """Whether eager mode is asked for, as it is until `enable_static`.

    >>> enable_static()
    >>> in_dynamic_mode()
    False
    >>> disable_static()
    >>> in_dynamic_mode()
    True
    """
    return not current().static_mode


def enable_static() -> None:
    """Ask for static mode, which changes nothing but what `in_dynamic_mode` says."""
    current().static_mode = True


def disable_static(place: Any = None) -> None:
    """Ask for eager mode again."""
    check_device("disable_static", place)
    current().static_mode = False


def disable_signal_handler() -> None:
    """Nothing: minipd installs no handlers of signals."""
