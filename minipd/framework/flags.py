"""Flags: `paddle.set_flags({"FLAGS_print_ir": 1})`, or the environment variable of that name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from minipd.framework.rank import current

__all__ = ["get_flags", "set_flags"]

#: name -> what it is without being set
FLAGS: dict[str, Any] = {
    "FLAGS_print_ir": False,            # print a program after every stage of its compilation
    "FLAGS_allocator_strategy": "auto_growth",      # keep freed memory (`framework.allocator`)
    "FLAGS_check_nan_inf": False,       # stop at the first operator with a NaN or an infinity in its result
    "FLAGS_check_nan_inf_level": 0,     # 0: raise; above: warn, and go on
    "FLAGS_use_stride_kernel": True,    # views share memory: here they always do
    "FLAGS_refuse_as_paddle": False,    # raise for placements that Paddle's rules refuse (`dist.spmd.refusals`)
}


def set_flags(flags: dict[str, Any]) -> None:
    """Set flags of this rank.

    Raises: ValueError for a flag that there is not.
    """
    for name in flags:
        _check(name, "set_flags")
    context = current()
    context.flags.update({name: type(FLAGS[name])(value) for name, value in flags.items()})
    context.compose()                       # some flags are layers over the interpreters


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """The values of flags.

    >>> get_flags("FLAGS_print_ir")
    {'FLAGS_print_ir': False}

    Raises: ValueError for a flag that there is not.
    """
    return {name: flag(name) for name in ([flags] if isinstance(flags, str) else flags)}


def flag(name: str) -> Any:
    """The value of one flag of this rank."""
    _check(name, "get_flags")
    return flag_in(current().flags, name)


def flag_in(own: dict[str, Any], name: str) -> Any:
    """A flag of the rank that has set `own`: as set by `set_flags`, else by the environment, else its default."""
    found = own.get(name)
    if found is None:
        text, default = os.environ.get(name), FLAGS[name]
        if text is None:
            return default
        found = text.lower() not in ("", "0", "false", "off") if isinstance(default, bool) else type(default)(text)
    return found


def _check(name: str, what: str) -> None:
    if name not in FLAGS:
        raise ValueError(f"{what}: expected a flag among {', '.join(FLAGS)}, got {name!r}")
