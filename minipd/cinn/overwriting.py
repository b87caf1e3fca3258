"""Which inputs a kernel may write its results over.

Result y may have the memory of input x, of the same shape and dtype, if every element of x is read for the last time
before that element of y is written.  That is so if every load of x

* stands before every store to y (or in the same statement), and
* has the same index as the store, which says how far the loops around both have come, or stands before it and has the
  part of the index that says so.

    for i: s = 0; for j: s += x[i, j]           y may be x: row i is summed, then read once more and written,
           for j: y[i, j] = x[i, j] / s         before row i + 1 is looked at

A schedule may keep values in an output for a while, or go over rows in chunks: so this is asked of the scheduled
function.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Expr,
    For,
    Function,
    IfThenElse,
    Init,
    Let,
    Load,
    Param,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import names, stmts_of, substitute, walk

__all__ = ["overwritable"]


class Access(NamedTuple):
    """An element read or written, at an index.  time: statements are numbered in the order of the text.  loops: those
    around it."""

    time: int
    at: tuple[Expr, ...]
    loops: tuple[For, ...]


def overwritable(function: Function) -> dict[int, tuple[int, ...]]:
    """Number of a result -> the numbers of the inputs that it may be written over; results without any are left out.

    Raises: TypeError for a function that is not in flat form.

    >>> import numpy as np
    >>> from minipd.cinn.ir.build import const
    >>> f64 = np.dtype("float64")
    >>> x, y = (Param(name, f64, 1, name == "y") for name in "xy")
    >>> double = Store("y", (Var("i"),), Load("x", (Var("i"),), f64))
    >>> overwritable(Function("f", (x, y), For("i", const(4, np.dtype("int64")), double), ()))
    {0: (0,)}
    """
    found = _Accesses(function)
    inputs = [p for p in function.params if not p.output]
    outputs = [p for p in function.params if p.output]
    allowed = {j: tuple(i for i, x in enumerate(inputs) if _alike(x, y) and _harmless(found, x.name, y.name))
               for j, y in enumerate(outputs)}
    return {j: xs for j, xs in allowed.items() if xs}


def _alike(x: Param, y: Param) -> bool:
    return (x.dtype, x.ndim, x.view) == (y.dtype, y.ndim, y.view)


def _harmless(found: _Accesses, x: str, y: str) -> bool:
    return all(load.time <= store.time and _in_step(load, store)
               for load in found.loads.get(x, ()) for store in found.stores[y])


def _in_step(load: Access, store: Access) -> bool:
    """Whether the loops around both go over the same elements with both, in each iteration over others.

    A load that stands before the store may also be anywhere in the part that an iteration has for itself:

        for i: top = x[i, label[i]]             row i is read before it is written
               for j: y[i, j] = ...
    """
    common = [a for a, b in zip(load.loops, store.loops, strict=False) if a is b]
    around = {loop.var for loop in common}
    same = [x == y for x, y in zip(_shape(load, around), _shape(store, around), strict=True)]
    if all(same):
        return all(around <= set().union(*map(names, access.at)) for access in (load, store))
    own = [e for e, alike in zip(load.at, same, strict=True) if alike and _tells_apart(e, around)]
    return load.time < store.time and around <= set().union(*map(names, own))


def _tells_apart(e: Expr, around: set[str]) -> bool:
    """Whether an index is another in each iteration, as far as it speaks of it: a quotient is not."""
    return not any(names(x) & around for x in walk(e) if isinstance(x, Load | Select)
                   or isinstance(x, Binary) and x.op not in ("add", "sub", "mul"))


def _shape(access: Access, around: set[str]) -> list[str]:
    """The index, with the loops that are not common named by how far they run."""
    own: dict[str, Expr] = {loop.var: Var(f"<{text(loop.extent)}>") for loop in access.loops if loop.var not in around}
    return [text(substitute(e, own)) for e in access.at]


class _Accesses:
    """Every load and store of a function, by buffer; indices are written out in terms of loop variables."""

    def __init__(self, function: Function):
        self.loads: dict[str, list[Access]] = {}
        self.stores: dict[str, list[Access]] = {p.name: [] for p in function.params if p.output}
        self.time = 0
        self._visit(function.body, (), {})

    def _visit(self, stmt: Stmt, loops: tuple[For, ...], lets: dict[str, Expr]) -> None:
        lets = dict(lets)
        for s in stmts_of(stmt):
            self.time += 1
            match s:
                case For(extent=extent, body=body):
                    self._read(extent, loops, lets)
                    self._visit(body, (*loops, s), lets)
                case Let(name=name, value=value):
                    self._read(value, loops, lets)
                    lets[name] = substitute(value, lets)
                case Init(value=value) | Accumulate(value=value):
                    self._read(value, loops, lets)
                case Store(buffer=buffer, index=index, value=value):
                    for e in (*index, value):
                        self._read(e, loops, lets)
                    where = tuple(substitute(e, lets) for e in index)
                    self.stores.setdefault(buffer, []).append(Access(self.time, where, loops))
                case IfThenElse(cond=cond, then=then, orelse=orelse):
                    self._read(cond, loops, lets)
                    for arm in (then, orelse):
                        if arm is not None:
                            self._visit(arm, loops, lets)
                case Seq():
                    self._visit(s, loops, lets)
                case Alloc(shape=shape):
                    for e in shape:
                        self._read(e, loops, lets)
                case _:
                    raise TypeError(f"expected a function in flat form, found {text(s)}")

    def _read(self, e: Expr, loops: tuple[For, ...], lets: dict[str, Expr]) -> None:
        for x in walk(e):
            if isinstance(x, Load):
                where = tuple(substitute(i, lets) for i in x.index)
                self.loads.setdefault(x.buffer, []).append(Access(self.time, where, loops))
