"""What the passes have in common."""

from __future__ import annotations

from collections.abc import Iterator

from minipd.cinn.ir.ast import Accumulate, Alloc, For, Function, Init, Let, Load, Stmt
from minipd.cinn.ir.walk import expressions, statements, walk

__all__ = ["Names", "accumulated", "declared", "loads_in", "numbered"]


def loads_in(s: Stmt) -> Iterator[Load]:
    """Every load in s."""
    return (e for whole in expressions(s) for e in walk(whole) if isinstance(e, Load))


def declared(s: Stmt) -> set[str]:
    """The scalars, loop variables and buffers that s declares somewhere inside."""
    found: set[str] = set()
    for x in statements(s):
        match x:
            case Let(name=name) | Init(name=name) | For(var=name) | Alloc(buffer=name):
                found.add(name)
    return found


def accumulated(s: Stmt) -> set[str]:
    """The accumulators that s adds to."""
    return {x.name for x in statements(s) if isinstance(x, Accumulate)}


class Names:
    """The names that a function has, for new ones."""

    def __init__(self, function: Function) -> None:
        self.taken = {p.name for p in function.params} | declared(function.body)

    def unused(self, name: str) -> str:
        """`name`, or with a number behind it, so that nothing in the function is called so; taken from now on."""
        new = numbered(name, self.taken)
        self.taken.add(new)
        return new


def numbered(name: str, taken: set[str]) -> str:
    """`name`, or with the first number behind it that makes it a new one.

    >>> numbered("t", {"t", "t2"}), numbered("v0", {"v0"})
    ('t3', 'v0_2')
    """
    candidate, n = name, 1
    while candidate in taken:
        n += 1
        candidate = f"{name}_{n}" if name[-1:].isdigit() else f"{name}{n}"
    return candidate
