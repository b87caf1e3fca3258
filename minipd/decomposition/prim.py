"""Paddle's switches for decomposition.

Paddle decomposes programs on the way to its compiler when "prim" is on.  Here the compiler decomposes what it wants in
parts, and `decompose` does when it is called, whatever the switches say: these only keep what they are told, and the
lists of operators that are to stay whole.
"""

from __future__ import annotations

from typing import Any

__all__ = ["PRIM_CONFIG"]

#: the operators that `decompose` leaves; those whose gradient Paddle leaves
PRIM_CONFIG: dict[str, set[str]] = {"forward_blacklist": set(), "composite_ops_record": set(),
                                    "backward_blacklist": set()}
_on = {"forward": False, "backward": False}


def _set_prim_forward_enabled(value: bool, print_flag: bool = False) -> None:
    _set("forward", value, print_flag)


def _set_prim_backward_enabled(value: bool, print_flag: bool = False) -> None:
    _set("backward", value, print_flag)


def _set_prim_all_enabled(value: bool, print_flag: bool = False) -> None:
    for part in _on:
        _on[part] = bool(value)
    if print_flag:
        print("all prim enabled: ", bool(value))


def _set(part: str, value: bool, print_flag: bool) -> None:
    _on[part] = bool(value)
    if print_flag:
        print(f"{part} prim enabled: ", bool(value))


def _is_fwd_prim_enabled() -> bool:
    return _on["forward"]


def _is_bwd_prim_enabled() -> bool:
    return _on["backward"]


def _is_all_prim_enabled() -> bool:
    return all(_on.values())


def _set_prim_forward_blacklist(*names: Any) -> None:
    """Operators that `decompose` leaves from now on: their names, or lists of them.

    >>> from minipd.base import core
    >>> core._set_prim_forward_blacklist("pd_op.softmax")
    >>> core.prim_config["forward_blacklist"]
    {'pd_op.softmax'}
    >>> core.prim_config["forward_blacklist"].clear()
    """
    PRIM_CONFIG["forward_blacklist"] |= _names("forward", names)


def _set_prim_backward_blacklist(*names: Any) -> None:
    PRIM_CONFIG["backward_blacklist"] |= _names("backward", names)


def _names(what: str, given: tuple) -> set[str]:
    names = {name for item in given for name in (item if isinstance(item, (set, list, tuple, frozenset)) else (item,))}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"_set_prim_{what}_blacklist: expected names of operators, got {name!r}")
    return names
