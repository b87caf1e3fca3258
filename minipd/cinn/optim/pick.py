"""`pick`: a sum all of whose terms are 0 but one is that one term.

    for (j, 0, 4096)                                    p = i64(label)
    {                                                   inside = p >= 0 and p < 4096
      total += j == label ? x[i, j] - top : 0.0         at = inside ? p : 0
    }                                                   total += inside ? x[i, at] - top : 0.0

So are the classes of a cross entropy taken from its logits, where no kernel of another kind does it: without a
comparison for every class, and another sum in the loop.  A quarter of the time, with its gradient, in the cache.

Only for loops that are known to have iterations, and fewer than 2^31: `at` is a place then, and j as an int32 still j.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from minipd.cinn.ir.ast import (
    BOOL,
    INT64,
    Accumulate,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    Function,
    Let,
    Select,
    Stmt,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, select, seq
from minipd.cinn.ir.ranges import Ranges, upper_bounds
from minipd.cinn.ir.walk import buffers_written, expressions, loads, map_bodies, names, statements, stmts_of, substitute
from minipd.cinn.optim.tree import Names, accumulated

__all__ = ["pick"]


def pick(function: Function) -> Function:
    """The function with such sums replaced by their terms."""
    body = _visited(function.body, Ranges({}), Names(function))
    return function if body is function.body else replace(function, body=body)


def _visited(s: Stmt, ranges: Ranges, unused: Names) -> Stmt:
    if not isinstance(s, For):
        return map_bodies(lambda x: _visited(x, ranges, unused), s)
    if any(isinstance(x, For) for x in statements(s.body)):
        inside = ranges.inside(s.var, s.extent)
        return map_bodies(lambda x: _visited(x, inside, unused), s)
    bounds = upper_bounds(s.extent)
    known = any(isinstance(b, Const) and b.value < 2**31 for b in bounds) and all(
        ranges.always(binary("lt", const(0, INT64), b)) for b in bounds)
    return _picked(s, unused) if known else s


def _picked(loop: For, unused: Names) -> Stmt:
    lets: dict[str, Expr] = {}
    kept: list[Stmt] = []
    after: list[Stmt] = []
    for s in stmts_of(loop.body):
        if isinstance(s, Let):
            lets[s.name] = substitute(s.value, lets)
        term = _term(s, loop, lets) if isinstance(s, Accumulate) and s.op == "add" else None
        if term is None:
            kept.append(s)
        else:
            assert isinstance(s, Accumulate)
            after += _added(s, loop, *term, unused)
    if not after:
        return loop
    if all(isinstance(s, Let) for s in kept):
        return seq(after)
    return seq([replace(loop, body=seq(_used(kept))), *after])


def _term(s: Accumulate, loop: For, lets: dict[str, Expr]) -> tuple[Expr, Expr] | None:
    """(position, value) if s adds `value` in the iteration `position` alone."""
    whole = substitute(s.value, lets)
    if not (isinstance(whole, Select) and whole.y == const(0, whole.dtype) and isinstance(whole.cond, Binary)
            and whole.cond.op == "eq"):
        return None
    changing = accumulated(loop)
    if names(whole) & changing or loads(whole) & buffers_written(loop):
        return None
    for mine, other in ((whole.cond.x, whole.cond.y), (whole.cond.y, whole.cond.x)):
        offset = _offset(mine, loop.var)
        if offset is not None and loop.var not in names(other) and other.dtype.kind in "iu":
            return binary("sub", cast(other, INT64), offset), whole.x
    return None


def _offset(e: Expr, var: str) -> Expr | None:
    """What is added to the loop's variable, if e is nothing but such a sum, perhaps as another kind of int."""
    while isinstance(e, Cast) and e.dtype in (np.dtype(np.int32), INT64):
        e = e.x
    if e == Var(var):
        return const(0, INT64)
    if isinstance(e, Binary) and e.op == "add":
        for mine, other in ((e.x, e.y), (e.y, e.x)):
            if mine == Var(var) and var not in names(other):
                return other
    return None


def _added(s: Accumulate, loop: For, position: Expr, value: Expr, unused: Names) -> list[Stmt]:
    p, inside, at = (unused.unused(f"{s.name}_{what}") for what in ("position", "inside", "at"))
    place = Var(p, INT64)
    known = binary("and", binary("ge", place, const(0, INT64)), binary("lt", place, loop.extent))
    term = substitute(value, {loop.var: Var(at, INT64)})
    return [Let(p, position), Let(inside, known), Let(at, select(Var(inside, BOOL), place, const(0, INT64))),
            replace(s, value=select(Var(inside, BOOL), term, const(0, term.dtype)))]


def _used(stmts: list[Stmt]) -> list[Stmt]:
    """The statements without the scalars that none of the others uses any more."""
    kept: list[Stmt] = []
    wanted: set[str] = set()
    for s in reversed(stmts):
        if isinstance(s, Let):
            if s.name not in wanted:
                continue
            wanted |= names(s.value)
        else:
            wanted = wanted.union(*map(names, expressions(s)))
        kept.append(s)
    return kept[::-1]

