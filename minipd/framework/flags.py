"""Flags: `paddle.set_flags({"FLAGS_print_ir": 1})`, or the environment variable of that name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from minipd.framework.rank import current

__all__ = ["get_flags", "set_flags"]

#: name -> what it is without being set
FLAGS: dict[str, Any] = {"FLAGS_print_ir": False}


def set_flags(flags: dict[str, Any]) -> None:
    """Set flags of this rank.

    Raises: ValueError for a flag that there is not.
    """
    for name in flags:
        _check(name, "set_flags")
    current().flags.update({name: type(FLAGS[name])(value) for name, value in flags.items()})


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """The values of flags.

    >>> get_flags("FLAGS_print_ir")
    {'FLAGS_print_ir': False}

    Raises: ValueError for a flag that there is not.
    """
    return {name: flag(name) for name in ([flags] if isinstance(flags, str) else flags)}


def flag(name: str) -> Any:
    """The value of one flag: set by `set_flags`, else by the environment, else its default."""
    _check(name, "get_flags")
    found = current().flags.get(name)
    if found is None:
        text = os.environ.get(name)
        found = FLAGS[name] if text is None else text.lower() not in ("", "0", "false", "off")
    return found


def _check(name: str, what: str) -> None:
    if name not in FLAGS:
        raise ValueError(f"{what}: expected a flag among {', '.join(FLAGS)}, got {name!r}")
