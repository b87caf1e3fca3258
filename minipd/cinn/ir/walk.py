"""Going through trees of the loop IR, and rebuilding them.

Expressions are shallow (a formula's depth), statements too; chains of operators are Lets in a Seq, so recursion is
bounded by what a person would write on one line.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from minipd.cinn.ir.ast import (
    BOOL,
    Accumulate,
    Alloc,
    Binary,
    Call,
    Cast,
    Const,
    Dim,
    Expr,
    For,
    IfThenElse,
    Init,
    Let,
    Load,
    Reduce,
    ScheduleBlock,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    Var,
)

__all__ = ["blocks", "buffers_read", "buffers_written", "bodies", "children", "conjuncts", "expressions",
           "flattened", "in_block_form", "loads", "loops", "map_bodies", "map_children", "map_expressions",
           "map_statements", "names", "own_expressions", "rename", "statements", "stmts_of", "substitute", "walk"]


# ------------------------------------------------------------------------------------------------- expressions
def children(e: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    match e:
        case Const() | Var() | Dim():
            return ()
        case Load(index=index):
            return index
        case Unary(x=x) | Cast(x=x):
            return (x,)
        case Binary(x=x, y=y):
            return (x, y)
        case Select(cond=cond, x=x, y=y):
            return (cond, x, y)
        case Call(args=args):
            return args
    raise AssertionError(e)


def map_children(f: Callable[[Expr], Expr], e: Expr) -> Expr:
    """The same expression of f(operand) for each operand; e itself if none changes."""
    old = children(e)
    if not old:
        return e
    new = tuple(map(f, old))
    if all(map(operator.is_, old, new)):
        return e
    match e:
        case Load():
            return replace(e, index=new)
        case Unary() | Cast():
            return replace(e, x=new[0])
        case Binary():
            return replace(e, x=new[0], y=new[1])
        case Select():
            return replace(e, cond=new[0], x=new[1], y=new[2])
        case Call():
            return replace(e, args=new)
    raise AssertionError(e)


def walk(e: Expr) -> Iterator[Expr]:
    """e and everything in it, operands before what they are operands of."""
    found: list[Expr] = []

    def go(e: Expr) -> None:
        for x in children(e):
            go(x)
        found.append(e)
    go(e)
    return iter(found)


def conjuncts(e: Expr) -> list[Expr]:
    """The conditions that all have to hold for e to hold; `build.conjunction` is the way back."""
    if isinstance(e, Binary) and e.op == "and":
        return [*conjuncts(e.x), *conjuncts(e.y)]
    return [] if e == Const(True, BOOL) else [e]


def substitute(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """e with variables replaced."""
    if isinstance(e, Var):
        return values.get(e.name, e)
    return map_children(lambda x: substitute(x, values), e)


def names(e: Expr) -> set[str]:
    """The variables that e reads."""
    return {x.name for x in walk(e) if isinstance(x, Var)}


def loads(e: Expr) -> set[str]:
    """The buffers that e reads."""
    return {x.buffer for x in walk(e) if isinstance(x, Load)}


# -------------------------------------------------------------------------------------------------- statements
def bodies(s: Stmt) -> tuple[Stmt, ...]:
    """The statements that stand directly inside s."""
    match s:
        case Seq(stmts=stmts):
            return stmts
        case For(body=body) | ScheduleBlock(body=body):
            return (body,)
        case IfThenElse(then=then, orelse=orelse):
            return (then,) if orelse is None else (then, orelse)
    return ()


def map_bodies(f: Callable[[Stmt], Stmt], s: Stmt) -> Stmt:
    """s with f(x) for each statement x directly inside it; s itself if none changes."""
    old = bodies(s)
    if not old:
        return s
    new = tuple(map(f, old))
    if all(map(operator.is_, old, new)):
        return s
    match s:
        case Seq():
            return Seq(new)
        case For() | ScheduleBlock():
            return replace(s, body=new[0])
        case IfThenElse():
            return replace(s, then=new[0], orelse=new[1] if len(new) > 1 else None)
    raise AssertionError(s)


def map_statements(f: Callable[[Stmt], Stmt], s: Stmt) -> Stmt:
    """s with each statement x in it replaced by f(x), inner ones before those that they stand in."""
    return f(map_bodies(lambda x: map_statements(f, x), s))


def statements(s: Stmt) -> Iterator[Stmt]:
    """s and every statement in it, outer before inner, in order."""
    waiting = [s]
    while waiting:
        x = waiting.pop()
        yield x
        waiting += reversed(bodies(x))


def loops(s: Stmt) -> list[For]:
    """The loops in s, outer before inner, in order."""
    return [x for x in statements(s) if isinstance(x, For)]


def blocks(s: Stmt) -> list[ScheduleBlock]:
    """The blocks in s, in order."""
    return [x for x in statements(s) if isinstance(x, ScheduleBlock)]


def stmts_of(s: Stmt) -> tuple[Stmt, ...]:
    """The statements of a Seq; anything else is a sequence of one."""
    return s.stmts if isinstance(s, Seq) else (s,)


def flattened(s: Stmt) -> tuple[Stmt, ...]:
    """The same, with those of Seqs inside the Seq; for code in which names are unique, as scopes go."""
    if not isinstance(s, Seq):
        return (s,)
    for x in s.stmts:
        if isinstance(x, Seq):
            return tuple(y for x in s.stmts for y in flattened(x))
    return s.stmts


def in_block_form(s: Stmt) -> bool:
    """Whether there are blocks in s."""
    return any(isinstance(x, ScheduleBlock) for x in statements(s))


def own_expressions(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in the statement itself, not in statements inside it."""
    match s:
        case For(extent=extent):
            return (extent,)
        case IfThenElse(cond=cond):
            return (cond,)
        case ScheduleBlock(iter_vars=iter_vars, iter_values=values, predicate=predicate):
            return (*(v.extent for v in iter_vars), *values, *(() if predicate is None else (predicate,)))
        case Let(value=value) | Init(value=value) | Accumulate(value=value):
            return (value,)
        case Store(index=index, value=value) | Reduce(index=index, value=value):
            return (*index, value)
        case Alloc(shape=shape):
            return shape
    return ()


def expressions(s: Stmt) -> Iterator[Expr]:
    """Every expression in s."""
    for x in statements(s):
        yield from own_expressions(x)


def buffers_read(s: Stmt) -> set[str]:
    """The buffers that s loads from; a Reduce reads what it adds to."""
    found = {x.buffer for x in statements(s) if isinstance(x, Reduce)}
    for e in expressions(s):
        found |= loads(e)
    return found


def buffers_written(s: Stmt) -> set[str]:
    return {x.buffer for x in statements(s) if isinstance(x, Store | Reduce)}


def map_expressions(f: Callable[[Expr], Expr], s: Stmt) -> Stmt:
    """s with each whole expression e in it replaced by f(e)."""
    s = map_bodies(lambda x: map_expressions(f, x), s)
    old = own_expressions(s)
    new = tuple(map(f, old))
    if all(map(operator.is_, old, new)):
        return s
    match s:
        case For():
            return replace(s, extent=new[0])
        case IfThenElse():
            return replace(s, cond=new[0])
        case ScheduleBlock(iter_vars=iter_vars):
            n = len(iter_vars)
            own = tuple(replace(v, extent=e) for v, e in zip(iter_vars, new, strict=False))
            return replace(s, iter_vars=own, iter_values=new[n:2 * n], predicate=new[2 * n] if new[2 * n:] else None)
        case Let() | Init() | Accumulate():
            return replace(s, value=new[0])
        case Store() | Reduce():
            return replace(s, index=new[:-1], value=new[-1])
        case Alloc():
            return replace(s, shape=new)
    raise AssertionError(s)


def rename(s: Stmt, variables: Mapping[str, str] = {}, buffers: Mapping[str, str] = {},  # noqa: B006  (read only)
           blocks: Mapping[str, str] = {}) -> Stmt:  # noqa: B006
    """s with other names: of loop variables, iter vars, Lets and accumulators; of buffers; of blocks.

    >>> from minipd.cinn.ir.printer import text
    >>> print(text(rename(Let("a", Load("x", (Var("i"),), Var("i").dtype)), {"i": "k", "a": "b"}, {"x": "y"})))
    b = y[k]
    """
    def expression(e: Expr) -> Expr:
        e = map_children(expression, e)
        if isinstance(e, Var) and e.name in variables:
            return replace(e, name=variables[e.name])
        if isinstance(e, Load) and e.buffer in buffers:
            return replace(e, buffer=buffers[e.buffer])
        return e

    def statement(s: Stmt) -> Stmt:
        match s:
            case For(var=var):
                return replace(s, var=variables.get(var, var))
            case ScheduleBlock(name=name, iter_vars=iter_vars):
                own = tuple(replace(v, name=variables.get(v.name, v.name)) for v in iter_vars)
                return replace(s, name=blocks.get(name, name), iter_vars=own)
            case Let(name=name) | Init(name=name) | Accumulate(name=name):
                return replace(s, name=variables.get(name, name))
            case Store(buffer=buffer) | Reduce(buffer=buffer) | Alloc(buffer=buffer):
                return replace(s, buffer=buffers.get(buffer, buffer))
        return s
    return map_statements(statement, map_expressions(expression, s))
