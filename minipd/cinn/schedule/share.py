"""`share` and `merge`: what a loop's body computes several times is computed once.

    p1[i] = p[i] - a * (m[i] * 0.9 + g[i] * 0.1)        t = m[i] * 0.9 + g[i] * 0.1
    m1[i] = m[i] * 0.9 + g[i] * 0.1                     p1[i] = p[i] - a * t
                                                        m1[i] = t
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from minipd.cinn.ir.ast import Binary, Cast, Expr, For, Function, Let, Select, Seq, Stmt, Unary, Var
from minipd.cinn.ir.walk import loads, map_children, map_expressions, names, own_expressions, substitute, walk
from minipd.cinn.schedule.tree import Path, accumulated, at, edit, stmts_of, stores_of, unused

__all__ = ["merge", "share"]


def share(function: Function, path: Path) -> Function:
    """Expressions of floats and bools that stand in a loop's body more than once get a name.   Needs nothing: what
    reads an accumulator, or a buffer that the body writes, is left alone."""
    loop = at(function, path)
    body = list(stmts_of(loop.body))
    written = {s.buffer for s in stores_of(loop.body)}
    varying = accumulated(loop.body)
    while True:
        found = _largest_repeated(body, written, varying)
        if found is None:
            break
        known = next((s.name for s in body if isinstance(s, Let) and s.value == found), None)
        first = next(n for n, s in enumerate(body) if _count(s, found))
        if known is None or not (isinstance(body[first], Let) and body[first].value == found):  # type: ignore[union-attr]
            known = unused(replace(function, body=Seq((function.body, *body))), "t")
            body.insert(first, Let(known, found))
        name = Var(known, found.dtype)
        body[first + 1:] = [_replaced(s, found, name) for s in body[first + 1:]]
    if len(body) == len(stmts_of(loop.body)) and Seq(tuple(body)) == Seq(stmts_of(loop.body)):
        return function
    new = replace(loop, body=Seq(tuple(body)))
    return edit(function, path, lambda stmts, n: [*stmts[:n], new, *stmts[n + 1:]])


def _largest_repeated(body: list[Stmt], written: set[str], varying: set[str]) -> Expr | None:
    counts: Counter[Expr] = Counter(e for s in body if not isinstance(s, For) for whole in own_expressions(s)
                                    for e in walk(whole) if isinstance(e, Binary | Unary | Cast | Select))
    repeated = [e for e, n in counts.items() if n > 1 and e.dtype.kind not in "iu" and not loads(e) & written
                and not names(e) & varying]
    return max(repeated, key=lambda e: sum(1 for _ in walk(e)), default=None)


def _count(s: Stmt, wanted: Expr) -> int:
    return 0 if isinstance(s, For) else sum(e == wanted for whole in own_expressions(s) for e in walk(whole))


def _replaced(s: Stmt, old: Expr, new: Expr) -> Stmt:
    def go(e: Expr) -> Expr:
        return new if e == old else map_children(go, e)
    return s if isinstance(s, For) else map_expressions(go, s)


def merge(function: Function, path: Path) -> Function:
    """Lets of a loop's body that say the same become the first of them, for the loops inside too.   Needs nothing: what
    reads an accumulator, or a buffer that the body writes, is left alone.

        for i in range(n):                  for i in range(n):
            a = m[i]                            a = m[i]
            for j in range(k): ... a ...        for j in range(k): ... a ...
            b = m[i]                            for j in range(k): ... a ...
            for j in range(k): ... b ...
    """
    loop = at(function, path)
    written = {s.buffer for s in stores_of(loop.body)}
    varying = accumulated(loop.body)
    first: dict[Expr, Var] = {}
    renamed: dict[str, Expr] = {}
    body: list[Stmt] = []
    for s in stmts_of(loop.body):
        s = map_expressions(lambda e: substitute(e, renamed), s) if renamed else s
        if isinstance(s, Let) and not loads(s.value) & written and not names(s.value) & varying:
            known = first.setdefault(s.value, Var(s.name, s.value.dtype))
            if known.name != s.name:
                renamed[s.name] = known
                continue
        body.append(s)
    if not renamed:
        return function
    new = replace(loop, body=Seq(tuple(body)))
    return edit(function, path, lambda stmts, n: [*stmts[:n], new, *stmts[n + 1:]])
