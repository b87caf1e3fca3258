"""`forward_stores`: who reads what the same iteration has stored takes the value, not the element.

    t[i, j] = exp(x[i, j])              t = exp(x[i, j])
    y[i, j] = t[i, j] * t[i, j]         t[i, j] = t
                                        y[i, j] = t * t

Where that was the last to read `t`, `simplify` then finds the store useless.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import (
    STORAGE_ONLY,
    Alloc,
    Cast,
    Const,
    Expr,
    Function,
    Init,
    Let,
    Load,
    Reduce,
    Seq,
    Stmt,
    Store,
    SyncThreads,
    Var,
)
from minipd.cinn.ir.walk import (
    buffers_written,
    loads,
    map_bodies,
    map_children,
    map_expressions,
    statements,
)
from minipd.cinn.ir.walk import names as varnames
from minipd.cinn.optim.tree import Names, accumulated, loads_in

__all__ = ["forward_stores"]


def forward_stores(function: Function) -> Function:
    """Loads of what an earlier statement of the same sequence has stored, and nothing in between has overwritten, are
    replaced by the value."""
    names = Names(function)
    # an array that nobody reads any more is gone soon, and its name free
    names.taken -= {x.buffer for x in statements(function.body) if isinstance(x, Alloc)} - {
        x.name for x in statements(function.body) if isinstance(x, Let | Init)}

    inputs = {p.name for p in function.params if not p.output}

    def forwarded(s: Stmt) -> Stmt:
        s = map_bodies(forwarded, s)
        return _in_sequence(s, names, inputs) if isinstance(s, Seq) else s
    return replace(function, body=forwarded(function.body))


def _in_sequence(s: Seq, names: Names, inputs: set[str]) -> Seq:
    stmts = list(s.stmts)
    k = 0
    while k < len(stmts):
        x = stmts[k]
        if isinstance(x, Store):
            element = Load(x.buffer, x.index, x.value.dtype)
            readers = _readers(stmts[k + 1:], x, element)
            if any(e == element for r in readers for e in loads_in(r)):
                lets, value = _value(x, names, inputs)
                stmts[k:k + 1 + len(readers)] = [*lets, replace(x, value=value),
                                                 *(_replaced(r, element, value) for r in readers)]
                k += len(lets)
        k += 1
    return Seq(tuple(stmts))


def _readers(stmts: list[Stmt], store: Store, element: Load) -> list[Stmt]:
    """The statements behind a store that see what it has stored: up to the next one that writes there, which itself
    may read before it writes."""
    inside = set().union(loads(store.value) if store.value.dtype in STORAGE_ONLY else (), *map(loads, store.index))
    seen: list[Stmt] = []
    for s in stmts:
        written = buffers_written(s)
        if any(isinstance(x, SyncThreads) for x in statements(s)) or inside & written or (
                varnames(store.value) & accumulated(s)):
            break
        if store.buffer in written:
            if isinstance(s, Store | Reduce):
                seen.append(s)
            break
        seen.append(s)
    return seen


def _value(store: Store, names: Names, inputs: set[str]) -> tuple[list[Stmt], Expr]:
    """What stands for the element: a name, a number, an input's element, or one of these rounded to what the buffer
    holds."""
    value = store.value
    if isinstance(value, Const | Var) or isinstance(value, Load) and value.buffer in inputs:
        return [], value
    if isinstance(value, Cast) and value.dtype in STORAGE_ONLY:
        if isinstance(value.x, Const | Var):
            return [], value
        let = Let(names.unused(store.buffer), value.x)
        return [let], Cast(Var(let.name, value.x.dtype), value.dtype)
    if value.dtype in STORAGE_ONLY:
        return [], value                        # a copy of an element
    let = Let(names.unused(store.buffer), value)
    return [let], Var(let.name, value.dtype)


def _replaced(s: Stmt, element: Load, value: Expr) -> Stmt:
    def go(e: Expr) -> Expr:
        return value if e == element else map_children(go, e)
    return map_expressions(go, s)
