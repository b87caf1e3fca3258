"""`hoist`: what does not change in a loop is computed before it.

    for i in range(n):                          c = f32(1.0 - 0.9 ** f64(t))
        y[i] = x[i] / f32(1.0 - 0.9 ** f64(t))  for i in range(n):
                                                    y[i] = x[i] / c

A hoisted load is in bounds whenever the loop around it runs, also where this loop has no iterations: lowering indexes
parameters by the variables of the loops that they belong to, and 0-D ones by nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from minipd.cinn.ir.ast import Const, Dim, Expr, For, Function, Let, Load, Seq, Stmt, Var
from minipd.cinn.ir.walk import loads, map_children, map_expressions, names, statements, substitute
from minipd.cinn.schedule.tree import Path, accumulated, at, declared, edit, stmts_of, stores_of, unused

__all__ = ["hoist"]


def hoist(function: Function, path: Path) -> Function:
    """Lets, and parts of expressions, that no iteration changes move in front of the loop.   Needs nothing.

    Only what stands in the loop's own body is looked at: hoist inner loops first.
    """
    loop = at(function, path)
    written = {s.buffer for s in stores_of(loop.body)}
    varying = {loop.var} | declared(loop.body) | accumulated(loop.body)
    times = Counter(s.name for s in statements(function.body) if isinstance(s, Let))
    before: list[Stmt] = []
    renamed: dict[str, Expr] = {}

    def out(name: str, e: Expr) -> Var:
        """`e` is computed before the loop, under this name if nothing else in the function has it."""
        if times[name] != 1:
            name = unused(replace(function, body=Seq((function.body, *before))), name)
        before.append(Let(name, e))
        return Var(name, e.dtype)

    def fixed(e: Expr) -> bool:
        return not names(e) & varying and not loads(e) & written

    def lift(e: Expr) -> Expr:
        """e with its largest fixed parts as variables.  Index arithmetic stays: it is cheap, and says where one is."""
        if isinstance(e, Const | Var | Dim | Load) or e.dtype.kind in "iu":
            return e
        return out("c", e) if fixed(e) else map_children(lift, e)

    body: list[Stmt] = []
    for s in stmts_of(loop.body):
        s = map_expressions(lambda e: substitute(e, renamed), s)
        if isinstance(s, Let) and fixed(s.value) and not isinstance(s.value, Const | Var):
            renamed[s.name] = out(s.name, s.value)
            varying.discard(s.name)
        else:
            body.append(s if isinstance(s, For) else map_expressions(lift, s))
    if not before:
        return function
    new = replace(loop, body=Seq(tuple(body)))
    return edit(function, path, lambda stmts, n: [*stmts[:n], *before, new, *stmts[n + 1:]])
