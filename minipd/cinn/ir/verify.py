"""What holds for every Function in block form; tests ask after every primitive of a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from minipd.cinn.ir.ast import (
    Alloc,
    Dim,
    Expr,
    For,
    Function,
    IfThenElse,
    Let,
    Load,
    Reduce,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    SyncThreads,
    Var,
)
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.walk import blocks, loops, own_expressions, statements, walk

__all__ = ["InvalidFunction", "verify"]


class InvalidFunction(Exception):
    """A Function that is not in block form, or breaks one of its rules."""


def verify(function: Function) -> None:
    """Check that a function is in block form:

    * its body is a Seq of Lets that name sizes, Allocs, and nests: For, IfThenElse, SyncThreads and, innermost,
      ScheduleBlock, with nothing between;
    * names of blocks, of loop variables, and of buffers are unique, and no iter var is called like a loop;
    * a block's body is a Seq of Lets that ends in one Store or Reduce, or in an IfThenElse whose arms are such; it
      reads its iter vars, its Lets and sizes, but no loop variable;
    * loads and stores fit their buffers: known here, as many indices as axes, of the buffer's dtype; inputs are not
      written;
    * only a block that reduces has iter vars of kind R, and its index has none of them.

    Raises: InvalidFunction.
    """
    _Check(function).all()


class _Check:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.sizes: set[str] = set()
        self.buffers: dict[str, tuple[np.dtype, int]] = {p.name: (p.dtype, p.ndim) for p in function.params}
        self.inputs = {p.name for p in function.params if not p.output}

    def refuse(self, where: str, problem: str) -> NoReturn:
        raise InvalidFunction(f"{self.function.name}: {where}: {problem}")

    def all(self) -> None:
        body = self.function.body
        self.unique("block", (b.name for b in blocks(body)))
        self.unique("loop", (x.var for x in loops(body)))
        self.unique("buffer", [*self.buffers, *(x.buffer for x in statements(body) if isinstance(x, Alloc))])
        loop_vars = {x.var for x in loops(body)}
        for b in blocks(body):
            for v in b.iter_vars:
                if v.name in loop_vars:
                    self.refuse(b.name, f"its iter var {v.name} is called like a loop")
        for s in body.stmts if isinstance(body, Seq) else (body,):
            if isinstance(s, Let):
                self.expressions(s, self.sizes, "a size")
                self.sizes.add(s.name)
            elif isinstance(s, Alloc):
                self.expressions(s, self.sizes, "a shape")
                self.buffers[s.buffer] = s.dtype, len(s.shape)
            else:
                self.nest(s, self.sizes)

    def unique(self, what: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                self.refuse(name, f"two {what}s of this name")
            seen.add(name)

    def nest(self, s: Stmt, known: set[str]) -> None:
        match s:
            case Seq(stmts=stmts):
                for x in stmts:
                    self.nest(x, known)
            case For(var=var, body=body):
                self.expressions(s, known, "an extent")
                self.nest(body, known | {var})
            case IfThenElse(then=then, orelse=orelse):
                self.expressions(s, known, "a condition")
                self.nest(then, known)
                if orelse is not None:
                    self.nest(orelse, known)
            case ScheduleBlock():
                self.expressions(s, known, "an iter value")
                self.block(s)
            case SyncThreads():
                pass
            case _:
                self.refuse(text(s), "it stands in no block")

    def block(self, b: ScheduleBlock) -> None:
        iter_vars = {v.name for v in b.iter_vars}
        self.body(b, b.body, self.sizes | iter_vars)
        final = [x for x in statements(b.body) if isinstance(x, Store | Reduce)]
        if len({(x.buffer, type(x)) for x in final}) != 1:
            self.refuse(b.name, "expected one Store or Reduce in its body, or as many into one buffer as arms")
        if final[0].buffer in self.inputs:
            self.refuse(b.name, f"it writes the input {final[0].buffer}")
        reduced = {v.name for v in b.iter_vars if v.kind == "R"}
        if reduced and isinstance(final[0], Store):
            self.refuse(b.name, f"it reduces over {', '.join(sorted(reduced))}, but ends in a Store")
        for x in final:
            if any(isinstance(e, Var) and e.name in reduced for i in x.index for e in walk(i)):
                self.refuse(b.name, f"the index in {text(x)} has a reduced iter var")

    def body(self, b: ScheduleBlock, s: Stmt, known: set[str]) -> None:
        stmts = s.stmts if isinstance(s, Seq) else (s,)
        for x in stmts[:-1]:
            if not isinstance(x, Let):
                self.refuse(b.name, f"expected Lets and one Store or Reduce behind them, found {text(x)}")
            self.expressions(x, known, "a Let")
            if x.name in known:
                self.refuse(b.name, f"{x.name} hides another {x.name}")
            known = known | {x.name}
        match stmts[-1] if stmts else None:
            case Store() | Reduce() as last:
                self.expressions(last, known, "the result")
                self.access(last.buffer, last.index, last.value.dtype, text(last))
            case IfThenElse(then=then, orelse=orelse) as last:
                self.expressions(last, known, "a condition")
                for arm in (then, orelse):
                    if arm is not None:
                        self.body(b, arm, known)
            case _:
                self.refuse(b.name, "expected a Store or Reduce at the end of its body")

    def expressions(self, s: Stmt, known: set[str], what: str) -> None:
        """Every name in the statement's own expressions is known, and every access fits."""
        where = text(s).splitlines()[0]
        for whole in own_expressions(s):
            for e in walk(whole):
                if isinstance(e, Var) and e.name not in known:
                    self.refuse(where, f"{what} reads {e.name}, which has no value here")
                elif isinstance(e, Load):
                    self.access(e.buffer, e.index, e.dtype, where)
                elif isinstance(e, Dim):
                    self.dim(e, where)

    def dim(self, e: Dim, where: str) -> None:
        if not any(p.name == e.param and e.axis < p.ndim for p in self.function.params):
            self.refuse(where, f"no parameter has {text(e)}")

    def access(self, buffer: str, index: tuple[Expr, ...], dtype: np.dtype, where: str) -> None:
        if buffer not in self.buffers:
            self.refuse(where, f"no buffer {buffer} here")
        if self.buffers[buffer] != (dtype, len(index)):
            found, axes = self.buffers[buffer]
            self.refuse(where, f"{buffer} is {found} with {axes} axes, taken for {dtype} with {len(index)}")
