"""`cache_row`: a value that two passes over a row compute is kept from the first one.

An input that is read again costs little, as the row is in the cache by then; an exponential is what one keeps.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import Alloc, Expr, For, Function, Let, Load, Seq, Stmt, Store, Var
from minipd.cinn.ir.walk import loads, names, substitute
from minipd.cinn.schedule.tree import (
    Path,
    ScheduleError,
    accumulated,
    at,
    declarations_at,
    edit,
    loads_of,
    stmts_of,
    stores_of,
    unused,
)

__all__ = ["cache_row", "full_value", "kept_in", "output_for"]


def full_value(loop: For, name: str) -> Expr | None:
    """What the loop's body computes for a Let, in terms of what is known outside (and the loop variable); None if the
    body has no such Let."""
    known: dict[str, Expr] = {}
    for s in stmts_of(loop.body):
        if isinstance(s, Let):
            known[s.name] = substitute(s.value, known)
            if s.name == name:
                return known[name]
    return None


def cache_row(function: Function, first: Path, later: Path, name: str, into: str | None = None) -> Function:
    """The later loop reads the value of Let `name` that the first one has stored.

    into: an output (see `output_for`) that serves as the buffer, or the local array in which the first loop keeps the
    value already (see `kept_in`); None makes a local array.
    Needs: two loops of one sequence with the same variable and extent, both without loops inside, that compute the same
    for `name`, from nothing that is written in either of them or between.
    """
    a, b = at(function, first), at(function, later)
    if first[:-1] != later[:-1] or first[-1] >= later[-1] or (a.var, a.extent) != (b.var, b.extent):
        raise ScheduleError(f"cache_row {name}: expected two loops over one row, the first one earlier")
    value = full_value(a, name)
    if value is None or value != full_value(b, name):
        raise ScheduleError(f"cache_row {name}: the two loops do not both compute it, or not from the same")
    between = _between(function, first, later)
    changed = set().union(*map(accumulated, between)), {s.buffer for x in between for s in stores_of(x)}
    if names(value) & changed[0] or loads(value) & changed[1]:
        raise ScheduleError(f"cache_row {name}: what it is computed from changes between the two loops")
    dtype = value.dtype
    index: tuple[Expr, ...] = (Var(a.var),)
    alloc: list[Stmt] = []
    already = into is not None and into == kept_in(function, first, later, name)
    if already:
        buffer = str(into)
    elif into is None:
        buffer = unused(function, f"{name}_row")
        alloc = [Alloc(buffer, (a.extent,), dtype)]
    else:
        if into not in output_for(function, first, later, dtype):
            raise ScheduleError(f"cache_row {name}: {into} is no output of {dtype} that only the later loop stores")
        buffer = into
        index = next(s.index for s in stores_of(b) if s.buffer == into)

    def kept(stmts: tuple[Stmt, ...]) -> Stmt:
        if already:
            return Seq(stmts)
        n = _place(stmts, name)
        let = stmts[n]
        assert isinstance(let, Let)
        return Seq((*stmts[:n + 1], Store(buffer, index, Var(name, let.value.dtype)), *stmts[n + 1:]))

    def read(stmts: tuple[Stmt, ...]) -> Stmt:
        n = _place(stmts, name)
        return Seq((*stmts[:n], Let(name, Load(buffer, index, dtype)), *stmts[n + 1:]))

    def new(stmts: tuple[Stmt, ...], n: int) -> list[Stmt]:
        m = later[-1]
        return [*stmts[:n], *alloc, replace(a, body=kept(stmts_of(a.body))), *stmts[n + 1:m],
                replace(b, body=read(stmts_of(b.body))), *stmts[m + 1:]]
    return edit(function, first, new)


def output_for(function: Function, first: Path, later: Path, dtype: object) -> list[str]:
    """The outputs whose rows may hold values between the two loops: of that dtype, stored in the later loop only, once
    for each element, and read nowhere."""
    b = at(function, later)
    found = []
    for p in function.params:
        own = [s for s in stores_of(function.body) if s.buffer == p.name]
        inside = [s for s in stores_of(b) if s.buffer == p.name]
        if p.output and p.dtype == dtype and len(own) == len(inside) == 1 and inside[0].index[-1:] == (Var(b.var),):
            if not any(load.buffer == p.name for load in loads_of(function.body)) and inside[0] in stmts_of(b.body):
                found.append(p.name)
    return found


def kept_in(function: Function, first: Path, later: Path, name: str) -> str | None:
    """The local row in which the first loop keeps its Let `name`, and which nothing writes up to the later one."""
    a, declarations = at(function, first), declarations_at(function, first)
    stores = [s for x in _between(function, first, later) for s in stores_of(x)]
    for s in stores_of(a.body):
        if isinstance(s.value, Var) and (s.value.name, s.index) == (name, (Var(a.var),)) and isinstance(
                declarations.get(s.buffer), Alloc) and sum(x.buffer == s.buffer for x in stores) == 1:
            return s.buffer
    return None


def _between(function: Function, first: Path, later: Path) -> list[Stmt]:
    """Both loops, and what stands between them."""
    s: Stmt = function.body
    for n in first[:-1]:
        s = stmts_of(s)[n]
        s = s.body if isinstance(s, For) else s
    return list(stmts_of(s)[first[-1]:later[-1] + 1])


def _place(stmts: tuple[Stmt, ...], name: str) -> int:
    return next(n for n, s in enumerate(stmts) if isinstance(s, Let) and s.name == name)
