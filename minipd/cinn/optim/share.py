"""`share`: what statements of one body compute several times has a name.

    p1[i] = p[i] - a * (m[i] * 0.9 + g[i] * 0.1)        t = m[i] * 0.9 + g[i] * 0.1
    m1[i] = m[i] * 0.9 + g[i] * 0.1                     p1[i] = p[i] - a * t
                                                        m1[i] = t

Positions that are made of more than one loop variable get a name, too: `i = i_chunk * 4 + i_step`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from minipd.cinn.ir.ast import (
    INT64,
    STORAGE_ONLY,
    Accumulate,
    Binary,
    Call,
    Cast,
    Expr,
    Function,
    Init,
    Let,
    Load,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    Var,
)
from minipd.cinn.ir.walk import (
    buffers_written,
    loads,
    loops,
    map_bodies,
    map_children,
    map_expressions,
    names,
    own_expressions,
    walk,
)
from minipd.cinn.optim.merge import merge
from minipd.cinn.optim.tree import Names, accumulated, declared, numbered

__all__ = ["share"]

SIMPLE = Let | Init | Accumulate | Store


def share(function: Function) -> Function:
    """Expressions of floats and bools, and compound positions, that stand in one sequence more than once get a name;
    what reads an accumulator, or a buffer that the sequence writes, is left alone."""
    loop_vars = {x.var for x in loops(function.body)}
    everything = Names(function)
    positions: dict[Expr, str] = {}             # one name for one position, wherever it occurs
    originals: dict[str, str] = {}

    def name_for(e: Expr, taken: set[str]) -> str:
        if e.dtype != INT64:
            return numbered("t", taken)
        if e not in positions:
            letter = min(names(e) & loop_vars, key=len).split("_")[0]
            positions[e] = everything.unused(letter)
            originals[positions[e]] = letter
        return positions[e]

    def go(s: Stmt, around: set[str]) -> Stmt:
        if isinstance(s, Seq):
            s = _shared(s, around | declared(s), loop_vars, name_for)
            around = around | {x.name for x in s.stmts if isinstance(x, Let | Init)}
        return map_bodies(lambda x: go(x, around), s)
    return merge(replace(function, body=go(function.body, {p.name for p in function.params} | loop_vars)), originals)


def _shared(s: Seq, taken: set[str], loop_vars: set[str], name_for: Callable[[Expr, set[str]], str]) -> Seq:
    body = list(s.stmts)
    written, varying = buffers_written(s), accumulated(s)
    while True:
        found = _largest_repeated(body, written, varying, loop_vars)
        if found is None:
            break
        known = next((x.name for x in body if isinstance(x, Let) and x.value == found), None)
        first = next(n for n, x in enumerate(body) if _count(x, found))
        if known is None or not (isinstance(body[first], Let) and body[first].value == found):  # type: ignore[union-attr]
            known = name_for(found, taken)
            taken.add(known)
            body.insert(first, Let(known, found))
        name = Var(known, found.dtype)
        body[first + 1:] = [_replaced(x, found, name) for x in body[first + 1:]]
    return s if len(body) == len(s.stmts) and tuple(body) == s.stmts else Seq(tuple(body))


def _largest_repeated(body: list[Stmt], written: set[str], varying: set[str], loop_vars: set[str]) -> Expr | None:
    counts: Counter[Expr] = Counter()
    for s in body:
        if isinstance(s, SIMPLE):
            for whole in own_expressions(s):
                counts.update(e for e in walk(whole) if isinstance(e, Binary | Unary | Cast | Select | Call | Load))
                if _is_position(whole, loop_vars) and not (isinstance(s, Let) and s.value is whole):
                    counts[whole] += 1          # also where it stands once
                for e in walk(whole):
                    if isinstance(e, Load):
                        counts.update(i for i in e.index if _is_position(i, loop_vars))
    repeated = [e for e, n in counts.items() if n > 1 and (e.dtype.kind not in "iu" or _is_position(e, loop_vars))
                and e.dtype not in STORAGE_ONLY and not loads(e) & written and not names(e) & varying]
    return max(repeated, key=lambda e: sum(1 for _ in walk(e)), default=None)


def _is_position(e: Expr, loop_vars: set[str]) -> bool:
    return isinstance(e, Binary) and e.dtype == INT64 and len(names(e) & loop_vars) > 1 and not loads(e)


def _count(s: Stmt, wanted: Expr) -> int:
    return sum(e == wanted for whole in own_expressions(s) for e in walk(whole)) if isinstance(s, SIMPLE) else 0


def _replaced(s: Stmt, old: Expr, new: Expr) -> Stmt:
    def go(e: Expr) -> Expr:
        return new if e == old else map_children(go, e)
    return map_expressions(go, s) if isinstance(s, SIMPLE) else s
