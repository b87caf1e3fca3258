"""Simplification: the same function, said with less.

Indices and extents (int64) are folded and collected; float expressions change only where the result is the same for
every input up to what the kernels' flags allow (the sign of a zero): x * 1, x + 0, x - 0, x / 1, a select of equal
sides.  x * 0 is not 0 (NaN), x - x neither.  Lets and accumulators that nothing reads go, and so do loops without
effect and local arrays without readers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from minipd.cinn.ir.ast import (
    BOOL,
    INT64,
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Const,
    Expr,
    For,
    Function,
    IfThenElse,
    Init,
    Let,
    Reduce,
    ScheduleBlock,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    Var,
)
from minipd.cinn.ir.build import const
from minipd.cinn.ir.operators import BINARY
from minipd.cinn.ir.walk import (
    expressions,
    in_block_form,
    loads,
    map_bodies,
    map_children,
    map_expressions,
    names,
    statements,
    substitute,
)

__all__ = ["simplify", "simplify_expression"]


def simplify(function: Function) -> Function:
    """The function with simpler expressions, and without what has no effect."""
    outputs = {p.name for p in function.params if p.output}
    body = function.body
    while True:
        new = _without_dead(_inline_trivial(map_expressions(simplify_expression, body), {}), outputs)
        if new == body:
            return replace(function, body=new)
        body = new


# ------------------------------------------------------------------------------------------------- expressions
def simplify_expression(e: Expr) -> Expr:
    """
    >>> from minipd.cinn.ir.build import binary
    >>> from minipd.cinn.ir.printer import text
    >>> i = Var("i")
    >>> text(simplify_expression(binary("floordiv", binary("add", binary("mul", i, 8), 0), 1)))
    'i * 8'
    """
    e = map_children(simplify_expression, e)
    match e:
        case Unary(op="not", x=Const(value=value)):
            return Const(not value, BOOL)
        case Unary(op="neg", x=Const(value=value, dtype=dtype)) if dtype.kind == "f":
            return const(-value, dtype)
        case Unary(op="neg", x=Unary(op="neg", x=x)) | Unary(op="not", x=Unary(op="not", x=x)):
            return x
        case Select(cond=Const(value=value), x=x, y=y):
            return x if value else y
        case Select(x=x, y=y) if x == y:
            return x
        case Cast(x=x, dtype=dtype) if x.dtype == dtype:
            return x
        case Cast(x=Const(value=value, dtype=source), dtype=dtype) if dtype.kind in "bf" or source.kind in "biu":
            return const(const(value, source).value, dtype)
        case Binary():
            return _binary(e)
    return e


def _binary(e: Binary) -> Expr:
    x, y = e.x, e.y
    if isinstance(x, Const) and isinstance(y, Const):
        return _folded(e, x, y)
    if e.op in ("and", "or"):
        for known, other in ((x, y), (y, x)):
            if isinstance(known, Const):
                return other if bool(known.value) == (e.op == "and") else known
    one, zero = _is(y, 1), _is(y, 0)
    match e.op:
        case "add" if zero:
            return x
        case "add" if _is(x, 0):
            return y
        case "sub" if zero:
            return x
        case "mul" if one:
            return x
        case "mul" if _is(x, 1):
            return y
        case "div" if one:
            return x
    if e.dtype == INT64:
        return _index_arithmetic(e)
    return e


def _folded(e: Binary, x: Const, y: Const) -> Expr:
    """Both sides are known."""
    if e.op in ("mod", "floordiv") and y.value == 0 and y.dtype.kind in "iu":
        return e
    with np.errstate(all="ignore"):
        result = BINARY[e.op].function(*(np.asarray(c.value).astype(c.dtype)[()] for c in (x, y)))
    return const(result, e.dtype)


def _is(e: Expr, value: int) -> bool:
    return isinstance(e, Const) and e.dtype != BOOL and e.value == value


def _index_arithmetic(e: Binary) -> Expr:
    """Rules that hold for the sizes and positions that int64 is used for (no overflow)."""
    x, y = e.x, e.y
    match e.op, x, y:
        case ("mul", _, Const(value=0)) | ("mod", _, Const(value=1)):
            return Const(0, INT64)
        case ("mul", Const(value=0), _):
            return x
        case ("floordiv", _, Const(value=1)):
            return x
        case ("add" | "mul", Const(), Binary() | Var()):
            return _index_arithmetic(replace(e, x=y, y=x))          # constants to the right
        case ("add" | "mul", Binary(op=inner, x=a, y=Const(value=b)), Const(value=c)) if inner == e.op:
            return replace(e, x=a, y=const(b + c if inner == "add" else b * c, INT64))
        case (("sub", Binary(op="add", x=a, y=b), c) | ("sub", Binary(op="add", x=b, y=a), c)) if b == c:
            return a
        case ("add", _, Binary(op="add", x=a, y=b)):
            return _index_arithmetic(replace(e, x=_index_arithmetic(replace(e, y=a)), y=b))     # a chain from the left
        case ("sub", _, _) if x == y:
            return Const(0, INT64)
        case ("min" | "max", _, _) if x == y:
            return x
    return e


# -------------------------------------------------------------------------------------------------- statements
def _inline_trivial(s: Stmt, known: dict[str, Expr]) -> Stmt:
    """Lets that only rename or name a constant are written out where they are read."""
    match s:
        case For(extent=extent, body=body):
            return replace(s, extent=substitute(extent, known), body=_inline_trivial(body, known))
        case IfThenElse(cond=cond):
            return map_bodies(lambda x: _inline_trivial(x, known), replace(s, cond=substitute(cond, known)))
        case Seq(stmts=stmts):
            accumulators = {x.name for x in statements(s) if isinstance(x, Init)}
            known, out = dict(known), []
            for x in stmts:
                x = _inline_trivial(x, known)
                match x:
                    case Let(name=name, value=Const() as value):
                        known[name] = value
                    case Let(name=name, value=Var() as value) if value.name not in accumulators:
                        known[name] = value
                    case _:
                        out.append(x)
            return Seq(tuple(out))
    return map_expressions(lambda e: substitute(e, known), s) if known else s


def _without_dead(s: Stmt, outputs: set[str]) -> Stmt:
    """Without scalars and local arrays that nothing reads, and what then has no effect."""
    read = set(outputs)
    for e in expressions(s):
        read |= loads(e)
    return _kept(s, read, set()) or Seq(())


def _kept(s: Stmt, buffers: set[str], dead: set[str]) -> Stmt | None:
    """buffers: those that something reads; dead: the accumulators of enclosing scopes that nothing reads."""
    match s:
        case Store(buffer=buffer) | Reduce(buffer=buffer) | Alloc(buffer=buffer):
            return s if buffer in buffers else None
        case ScheduleBlock(body=body):
            return None if _kept(body, buffers, dead) is None else s
        case Accumulate(name=name):
            return None if name in dead else s
        case For(body=body):
            inner = _kept(body, buffers, dead)
            if inner is None or s.extent == Const(0, INT64):
                return None
            if s.extent == Const(1, INT64) and s.kind in ("serial", "vector", "unroll") and not in_block_form(inner):
                return Seq((Let(s.var, Const(0, INT64)), inner))
            return replace(s, body=inner)
        case IfThenElse(then=then, orelse=orelse):
            return _kept_arms(s, _kept(then, buffers, dead), None if orelse is None else _kept(orelse, buffers, dead))
        case Seq(stmts=stmts):
            return _kept_in_sequence(stmts, buffers, dead)
    return s


def _kept_arms(s: IfThenElse, then: Stmt | None, orelse: Stmt | None) -> Stmt | None:
    """A condition with what is left of its arms."""
    if s.cond == Const(True, BOOL) or s.cond == Const(False, BOOL):
        return then if s.cond == Const(True, BOOL) else orelse
    if then is None:
        return None if orelse is None else IfThenElse(Unary("not", s.cond, BOOL), orelse)
    return IfThenElse(s.cond, then, orelse)


def _kept_in_sequence(stmts: tuple[Stmt, ...], buffers: set[str], dead: set[str]) -> Stmt | None:
    """A name may come again in a sibling scope, so only what follows in the same Seq can read it."""
    read: set[str] = set()
    for x in reversed(stmts):
        if isinstance(x, Let | Init):
            dead = dead - {x.name} if x.name in read else dead | {x.name}
            if x.name in dead:
                continue
            read -= {x.name}
        for e in expressions(x):
            read |= names(e)
    kept: list[Stmt] = []
    for x in stmts:
        if isinstance(x, Let | Init) and x.name in dead:
            continue
        new = _kept(x, buffers, dead)
        if isinstance(new, Seq) and not any(isinstance(inner, Let | Init | Alloc) for inner in new.stmts):
            kept += new.stmts
        elif new is not None:
            kept.append(new)
    return Seq(tuple(kept)) if kept else None
