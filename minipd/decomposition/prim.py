"""Paddle's switches for decomposition.

Paddle decomposes programs on the way to its compiler when "prim" is on.  Here the compiler decomposes what it wants in
parts, and `decompose` does when it is called, whatever the switches say: these only keep what they are told, and the
lists of operators that are to stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minipd.framework.rank import current

__all__ = ["PRIM_CONFIG"]

#: the operators that `decompose` leaves; a list of Paddle's that nothing here reads; those whose gradient Paddle leaves
LISTS = ("forward_blacklist", "composite_ops_record", "backward_blacklist")
PARTS = ("forward", "backward")


class _Config(Mapping[str, set[str]]):
    """Paddle's `core.prim_config`: the lists of the rank that asks."""

    def __getitem__(self, name: str) -> set[str]:
        if name not in LISTS:
            raise KeyError(name)
        return current().prim.setdefault(name, set())

    def __iter__(self) -> Iterator[str]:
        return iter(LISTS)

    def __len__(self) -> int:
        return len(LISTS)


PRIM_CONFIG = _Config()


def _set_prim_forward_enabled(value: bool, print_flag: bool = False) -> None:
    _set("forward", value, print_flag)


def _set_prim_backward_enabled(value: bool, print_flag: bool = False) -> None:
    _set("backward", value, print_flag)


def _set_prim_all_enabled(value: bool, print_flag: bool = False) -> None:
    current().prim.update(dict.fromkeys(PARTS, bool(value)))
    if print_flag:
        print("all prim enabled: ", bool(value))


def _set(part: str, value: bool, print_flag: bool) -> None:
    current().prim[part] = bool(value)
    if print_flag:
        print(f"{part} prim enabled: ", bool(value))


def _enabled(part: str) -> bool:
    return current().prim.get(part, False)


def _is_fwd_prim_enabled() -> bool:
    return _enabled("forward")


def _is_bwd_prim_enabled() -> bool:
    return _enabled("backward")


def _is_all_prim_enabled() -> bool:
    return all(map(_enabled, PARTS))


def _set_prim_forward_blacklist(*names: Any) -> None:
    """Operators that `decompose` leaves from now on: their names, or lists of them.  Raises: TypeError for others.

    >>> from minipd.base import core
    >>> core._set_prim_forward_blacklist("pd_op.softmax")
    >>> core.prim_config["forward_blacklist"]
    {'pd_op.softmax'}
    >>> core.prim_config["forward_blacklist"].clear()
    """
    PRIM_CONFIG["forward_blacklist"].update(_names("forward", names))


def _set_prim_backward_blacklist(*names: Any) -> None:
    PRIM_CONFIG["backward_blacklist"].update(_names("backward", names))


def _names(what: str, given: tuple) -> set[str]:
    names = {name for item in given for name in (item if isinstance(item, (set, list, tuple, frozenset)) else (item,))}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"_set_prim_{what}_blacklist: expected names of operators, got {name!r}")
    return names
