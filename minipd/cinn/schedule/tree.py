"""Places in a function.

A path says how to get to a statement from the body: a number picks a statement of a Seq, and a loop's body is entered
without a number.  `loops` lists them; a primitive takes a function and paths, and gives a new function, in which old
paths mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import Accumulate, Alloc, Binary, Expr, For, Function, Init, Let, Load, Seq, Stmt, Store
from minipd.cinn.ir.walk import expressions, statements, walk

__all__ = ["Path", "ScheduleError", "accumulated", "at", "declarations_at", "declared", "edit", "innermost",
           "loads_of", "loops", "stmts_of", "stores_of", "unused", "updates_of"]

Path = tuple[int, ...]


class ScheduleError(Exception):
    """A primitive whose precondition does not hold: it would change what the function means."""


def stmts_of(s: Stmt) -> tuple[Stmt, ...]:
    """The statements of a Seq; anything else is a sequence of one."""
    return s.stmts if isinstance(s, Seq) else (s,)


def loops(function: Function) -> list[tuple[Path, For]]:
    """Every loop with its path, outer before inner, in order."""
    return list(_loops(function.body, ()))


def _loops(s: Stmt, path: Path) -> Iterator[tuple[Path, For]]:
    for n, x in enumerate(stmts_of(s)):
        if isinstance(x, For):
            yield (*path, n), x
            yield from _loops(x.body, (*path, n))
        elif isinstance(x, Seq):
            yield from _loops(x, (*path, n))


def at(function: Function, path: Path) -> For:
    """The loop at a path.

    Raises: ScheduleError if there is none.
    """
    found = inside = function.body
    for n in path:
        stmts = stmts_of(inside)
        found = stmts[n] if n < len(stmts) else Seq(())
        inside = found.body if isinstance(found, For) else found
    if not path or not isinstance(found, For):
        raise ScheduleError(f"{function.name}: no loop at {path}")
    return found


def edit(function: Function, path: Path, new: Callable[[tuple[Stmt, ...], int], list[Stmt]]) -> Function:
    """The function with the sequence around the loop at `path` replaced by new(its statements, the loop's place)."""
    def go(s: Stmt, rest: Path) -> Stmt:
        stmts = stmts_of(s)
        if len(rest) == 1:
            return Seq(tuple(new(stmts, rest[0])))
        x = stmts[rest[0]]
        inside = replace(x, body=go(x.body, rest[1:])) if isinstance(x, For) else go(x, rest[1:])
        return Seq((*stmts[:rest[0]], inside, *stmts[rest[0] + 1:]))
    at(function, path)
    return replace(function, body=go(function.body, path))


def innermost(loop: For) -> bool:
    return not any(isinstance(x, For) for x in statements(loop.body))


def declared(s: Stmt) -> set[str]:
    """The scalars and buffers that s declares somewhere inside."""
    return {x.buffer if isinstance(x, Alloc) else x.name for x in statements(s) if isinstance(x, Let | Init | Alloc)}


def declarations_at(function: Function, path: Path) -> dict[str, Stmt]:
    """What is declared around the loop at a path, by name."""
    found: dict[str, Stmt] = {}
    s: Stmt = function.body
    for n in path:
        for x in stmts_of(s)[:n]:
            if isinstance(x, Init | Let):
                found[x.name] = x
            elif isinstance(x, Alloc):
                found[x.buffer] = x
        s = stmts_of(s)[n]
        s = s.body if isinstance(s, For) else s
    return found


def stores_of(s: Stmt) -> list[Store]:
    return [x for x in statements(s) if isinstance(x, Store)]


def loads_of(s: Stmt) -> list[Load]:
    return [e for whole in expressions(s) for e in walk(whole) if isinstance(e, Load)]


def accumulated(s: Stmt) -> set[str]:
    """The accumulators that s adds to."""
    return {x.name for x in statements(s) if isinstance(x, Accumulate)}


def unused(function: Function, name: str) -> str:
    """`name`, or with a number behind it, so that nothing in the function is called so."""
    taken = {p.name for p in function.params} | declared(function.body) | {
        x.var for x in statements(function.body) if isinstance(x, For)}
    candidate, n = name, 1
    while candidate in taken:
        n += 1
        candidate = f"{name}{n}"
    return candidate


def updates_of(s: Stmt, buffer: str) -> tuple[str, tuple[Expr, ...]] | None:
    """(op, index) if all that s does with a buffer is `buffer[index] = buffer[index] op value`, else None."""
    found: set[tuple[str, tuple[Expr, ...]]] = set()
    count = 0
    for x in stores_of(s):
        if x.buffer != buffer:
            continue
        match x.value:
            case Binary(op=("add" | "max" | "min") as op, x=Load(buffer=b, index=index)) if (b, index) == (
                    buffer, x.index):
                found.add((op, index))
                count += 1
            case _:
                return None
    if len(found) != 1 or sum(load.buffer == buffer for load in loads_of(s)) != count:
        return None
    return found.pop()
