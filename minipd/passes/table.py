"""The table of passes: Paddle's name -> how to make the pass."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, TypeVar

from minipd.ir.passes import Pass

__all__ = ["create_pass", "pass_names", "register_pass"]

MAKERS: dict[str, Callable[..., Pass]] = {}

M = TypeVar("M", bound=Callable[..., Pass])


def register_pass(name: str) -> Callable[[M], M]:
    """Decorator: a class (or function) whose call makes the pass `name`.

    Raises: ValueError if there is one of that name.
    """
    def register(make: M) -> M:
        if name in MAKERS:
            raise ValueError(f"register_pass: there is a pass {name!r} already")
        MAKERS[name] = make
        return make
    return register


def create_pass(name: str, attrs: dict[str, Any] | None = None) -> Pass:
    """A pass by name.  attrs: its options.

    Raises: KeyError for an unknown name, TypeError for an option that the pass does not have.

    >>> create_pass("dead_code_elimination_pass").name
    'dead_code_elimination_pass'
    """
    if name not in MAKERS:
        near = difflib.get_close_matches(name, MAKERS, 3)
        raise KeyError(f"pass {name!r}: expected one of the table, got no such name; "
                       + (f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(MAKERS)}"))
    return MAKERS[name](**(attrs or {}))


def pass_names() -> list[str]:
    """The names in the table."""
    return sorted(MAKERS)
