"""Going through trees of the loop IR, and rebuilding them.

Expressions are shallow (a formula's depth), statements too; chains of operators are Lets in a Seq, so recursion is
bounded by what a person would write on one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Expr,
    For,
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

__all__ = ["children", "expressions", "loads", "map_children", "map_expressions", "names", "statements", "substitute"]


def children(e: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    match e:
        case Load(index=index):
            return index
        case Unary(x=x) | Cast(x=x):
            return (x,)
        case Binary(x=x, y=y):
            return (x, y)
        case Select(cond=cond, x=x, y=y):
            return (cond, x, y)
    return ()


def map_children(f: Callable[[Expr], Expr], e: Expr) -> Expr:
    """The same expression of f(operand) for each operand; e itself if none changes."""
    old = children(e)
    new = tuple(map(f, old))
    if all(a is b for a, b in zip(old, new, strict=True)):
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
    raise AssertionError(e)


def walk(e: Expr) -> Iterator[Expr]:
    """e and everything in it, operands before what they are operands of."""
    for x in children(e):
        yield from walk(x)
    yield e


def substitute(e: Expr, values: dict[str, Expr]) -> Expr:
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
def statements(s: Stmt) -> Iterator[Stmt]:
    """s and every statement in it, outer before inner, in order."""
    yield s
    match s:
        case Seq(stmts=stmts):
            for x in stmts:
                yield from statements(x)
        case For(body=body):
            yield from statements(body)


def own_expressions(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that stand in the statement itself, not in statements inside it."""
    match s:
        case For(extent=extent):
            return (extent,)
        case Let(value=value) | Init(value=value) | Accumulate(value=value):
            return (value,)
        case Store(index=index, value=value):
            return (*index, value)
        case Alloc(shape=shape):
            return shape
    return ()


def expressions(s: Stmt) -> Iterator[Expr]:
    """Every expression in s."""
    for x in statements(s):
        yield from own_expressions(x)


def map_expressions(f: Callable[[Expr], Expr], s: Stmt) -> Stmt:
    """s with each whole expression e in it replaced by f(e)."""
    match s:
        case Seq(stmts=stmts):
            return Seq(tuple(map_expressions(f, x) for x in stmts))
        case For(extent=extent, body=body):
            return replace(s, extent=f(extent), body=map_expressions(f, body))
        case Let(value=value) | Init(value=value) | Accumulate(value=value):
            return replace(s, value=f(value))
        case Store(index=index, value=value):
            return replace(s, index=tuple(map(f, index)), value=f(value))
        case Alloc(shape=shape):
            return replace(s, shape=tuple(map(f, shape)))
    raise AssertionError(s)
