"""`eliminate_invariant_loop`: what does not change in a loop is computed before it.

    for (i, 0, n)                                   c = f32(1.0 - 0.9 ** f64(t))
    {                                               for (i, 0, n)
      y[i] = x[i] / f32(1.0 - 0.9 ** f64(t))        {
    }                                                 y[i] = x[i] / c
                                                    }

A hoisted load is in bounds whenever the loop around it runs, also where this loop has no iterations: parameters are
indexed by the variables of the loops that they belong to, and 0-D ones by nothing.  Out of a loop that a condition made
shorter in some iterations of those around (its extent has a variable), only 0-D ones are hoisted.
"""

from __future__ import annotations

from dataclasses import replace

from minipd.cinn.ir.ast import (
    Accumulate,
    Const,
    Dim,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Reduce,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.walk import (
    buffers_written,
    loads,
    map_bodies,
    map_children,
    map_expressions,
    names,
    stmts_of,
    substitute,
    walk,
)
from minipd.cinn.optim.merge import merge
from minipd.cinn.optim.tree import Names, accumulated, declared

__all__ = ["eliminate_invariant_loop"]


def eliminate_invariant_loop(function: Function) -> Function:
    """Lets, and parts of expressions, that no iteration changes stand in front of the loop; what several loops had
    alike stands there once.

    Needs names that mean one thing wherever they are known, as `merge` leaves them.
    """
    taken = Names(function)
    originals: dict[str, str] = {}

    def go(s: Stmt) -> Stmt:
        s = map_bodies(go, s)
        if isinstance(s, For):
            before, loop = _lifted(s, taken, originals)
            return Seq((*before, loop)) if before else loop
        if isinstance(s, Seq):                  # what came out of a loop belongs to the sequence around
            return Seq(tuple(y for x in s.stmts for y in (stmts_of(x) if isinstance(x, Seq) else (x,))))
        return s
    return merge(replace(function, body=go(function.body)), originals)


def _lifted(loop: For, taken: Names, originals: dict[str, str]) -> tuple[list[Stmt], For]:
    """The statements to stand in front of a loop, and the loop.  What moves gets a name that nothing else has, as its
    own may mean something else in a loop nearby; `originals` says what it was."""
    written = buffers_written(loop.body)
    varying = {loop.var} | declared(loop.body) | accumulated(loop.body)
    before: list[Stmt] = []
    renamed: dict[str, Expr] = {}

    may_be_skipped = bool(names(loop.extent))

    def fixed(e: Expr) -> bool:
        if may_be_skipped and any(isinstance(x, Load) and x.index for x in walk(e)):
            return False
        return not names(e) & varying and not loads(e) & written

    def lift(e: Expr) -> Expr:
        """e with its largest fixed parts as variables.  Index arithmetic stays: it is cheap, and says where one is."""
        if isinstance(e, Const | Var | Dim | Load) or e.dtype.kind in "iu":
            return e
        if not fixed(e):
            return map_children(lift, e)
        return out("c", e)

    def out(name: str, e: Expr) -> Var:
        new = taken.unused(name)
        originals[new] = originals.get(name, name)
        before.append(Let(new, e))
        return Var(new, e.dtype)

    body: list[Stmt] = []
    for s in stmts_of(loop.body):
        s = map_expressions(lambda e: substitute(e, renamed), s) if renamed else s
        if isinstance(s, Let) and fixed(s.value):
            renamed[s.name] = out(s.name, s.value)
        elif isinstance(s, Let | Init | Accumulate | Store | Reduce):
            body.append(map_expressions(lift, s))
        else:
            body.append(s)
    return before, replace(loop, body=Seq(tuple(body)))
