"""The switch between Paddle's two modes: eager, and static, in which code writes a program instead of computing.

Static mode is built on the floor of programs, which plugs it in here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.place import check_device
from minipd.framework.rank import current

__all__ = ["disable_signal_handler", "disable_static", "enable_static", "in_dynamic_mode"]

#: puts a program on the ground, or takes it away; the floor of programs puts it here
_switch: Callable[[bool], None] | None = None


def install_static(switch: Callable[[bool], None]) -> None:
    """The floor of programs plugs static mode in: `switch(True)` enters it, `switch(False)` leaves it."""
    global _switch
    _switch = switch


def in_dynamic_mode() -> bool:
    """Whether operators are computed at once, as they are until `enable_static`.

    >>> in_dynamic_mode()
    True
    """
    return not current().static_mode


def enable_static() -> None:
    """Write what follows into the default program (`paddle.static.default_main_program()`) instead of computing it.

    Raises: RuntimeError in chapter 1, in which there are no programs yet.
    """
    if _switch is None:
        raise RuntimeError("enable_static: programs are built in chapter 2, and its floor is closed; "
                           "unset MINIPD_FLOOR")
    if in_dynamic_mode():
        current().static_mode = True
        _switch(True)


def disable_static(place: Any = None) -> None:
    """Compute at once again."""
    check_device("disable_static", place)
    if _switch is not None and not in_dynamic_mode():
        current().static_mode = False
        _switch(False)


def disable_signal_handler() -> None:
    """Nothing: minipd installs no handlers of signals."""
