"""What a Function means: slow, and strict about everything that a kernel would do silently.

Scalars are numpy scalars of the exact dtype.  Every index is checked against the bounds of its buffer (negative ones
are errors too), every name against its scope, and every element of a local array or an output that is read must have
been written; outputs must be written in full.  Loops of all kinds run in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.cinn.ir.ast import (
    Accumulate,
    Alloc,
    Binary,
    Cast,
    Const,
    Dim,
    Expr,
    For,
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
    viewed,
)
from minipd.cinn.ir.operators import BINARY, UNARY
from minipd.cinn.ir.printer import text

__all__ = ["LoopError", "interpret"]


class LoopError(Exception):
    """A Function that does what no kernel may do; the message quotes the expression or statement."""


def interpret(function: Function, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Run a function: `outputs` are written into.

    inputs, outputs: one array per parameter, in order, contiguous where a parameter has a view.
    Raises: LoopError.

    >>> from minipd.cinn.ir.ast import Param
    >>> from minipd.cinn.ir.build import binary
    >>> i, f32 = Var("i"), np.dtype("float32")
    >>> double = Function("double", (Param("x", f32, 1), Param("y", f32, 1, output=True)), For("i", Dim("x", 0), Store(
    ...     "y", (i,), binary("add", Load("x", (i,), f32), Load("x", (i,), f32)))))
    >>> y = np.empty(3, f32)
    >>> interpret(double, [np.array([1, 2, 3], f32)], [y])
    >>> y
    array([2., 4., 6.], dtype=float32)
    """
    arrays = [*inputs, *outputs]
    if len(arrays) != len(function.params):
        raise LoopError(f"{function.name}: expected {len(function.params)} arrays, got {len(arrays)}")
    run = _Run()
    for p, array in zip(function.params, arrays, strict=True):
        buffer = viewed(p, array)
        if buffer.ndim != p.ndim or buffer.dtype != p.dtype:
            raise LoopError(f"{function.name}: parameter {p.name} is {p.dtype} with {p.ndim} axes, got {buffer.dtype} "
                            f"with {buffer.ndim}")
        run.buffers[p.name] = buffer
        run.written[p.name] = np.full(buffer.shape, not p.output)
        run.writable[p.name] = p.output
    with np.errstate(all="ignore"):
        run.statement(function.body)
    for p in function.params:
        if not run.written[p.name].all():
            first = tuple(int(i) for i in np.argwhere(~run.written[p.name])[0])
            raise LoopError(f"{function.name}: output {p.name} is not written at {list(first)}")


class _Run:
    def __init__(self) -> None:
        self.buffers: dict[str, np.ndarray] = {}
        #: for each buffer, which of its elements have a value
        self.written: dict[str, np.ndarray] = {}
        self.writable: dict[str, bool] = {}
        self.scalars: dict[str, Any] = {}
        self.accumulators: set[str] = set()

    # ------------------------------------------------------------------------------------------- expressions
    def expression(self, e: Expr) -> Any:
        match e:
            case Const(value=value, dtype=dtype):
                return np.asarray(value).astype(dtype)[()]
            case Var(name=name, dtype=dtype):
                self._check(name in self.scalars, e, "it has no value here")
                held = self.scalars[name]
                self._check(held.dtype == dtype, e, f"{name} is {held.dtype}, read as {dtype}")
                return held
            case Load(buffer=buffer, index=index, dtype=dtype):
                array, at = self._element(e, buffer, index)
                self._check(array.dtype == dtype, e, f"{buffer} is {array.dtype}, read as {dtype}")
                self._check(bool(self.written[buffer][at]), e, f"{buffer}{list(at)} is read before it is written")
                return array[at]
            case Dim(param=param, axis=axis):
                self._check(param in self.buffers and axis < self.buffers[param].ndim, e, "no such axis")
                return np.int64(self.buffers[param].shape[axis])
            case Unary(op=op, x=x):
                return UNARY[op].function(self.expression(x))
            case Binary(op=op, x=x, y=y):
                a, b = self.expression(x), self.expression(y)
                self._check(op not in ("mod", "floordiv") or e.dtype.kind == "f" or b != 0, e, "division by 0")
                return BINARY[op].function(a, b)
            case Select(cond=cond, x=x, y=y):
                c, a, b = self.expression(cond), self.expression(x), self.expression(y)
                return a if c else b
            case Cast(x=x, dtype=dtype):
                return self.expression(x).astype(dtype)
        raise AssertionError(e)

    def _element(self, where: Expr | Stmt, buffer: str, index: tuple[Expr, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
        self._check(buffer in self.buffers, where, f"no buffer {buffer} here")
        array = self.buffers[buffer]
        at = tuple(int(self.expression(i)) for i in index)
        self._check(len(at) == array.ndim, where, f"{buffer} has {array.ndim} axes")
        self._check(all(0 <= i < n for i, n in zip(at, array.shape, strict=True)), where,
                    f"{list(at)} is outside {buffer}, whose shape is {list(array.shape)}")
        return array, at

    @staticmethod
    def _check(condition: bool, where: Expr | Stmt, problem: str) -> None:
        if not condition:
            raise LoopError(f"{text(where)}: {problem}")

    # -------------------------------------------------------------------------------------------- statements
    def statement(self, s: Stmt) -> None:
        match s:
            case Seq(stmts=stmts):
                before = dict(self.scalars), set(self.accumulators), set(self.buffers)
                for x in stmts:
                    self.statement(x)
                self._leave(*before)
            case For(var=var, extent=extent, body=body):
                self._check(var not in self.scalars, s, f"{var} hides another {var}")
                for i in range(int(self.expression(extent))):
                    self.scalars[var] = np.int64(i)
                    self.statement(Seq((body,)))
                self.scalars.pop(var, None)
            case Let(name=name, value=value) | Init(name=name, value=value):
                self._check(name not in self.scalars, s, f"{name} hides another {name}")
                self.scalars[name] = self.expression(value)
                if isinstance(s, Init):
                    self.accumulators.add(name)
            case Accumulate(name=name, op=op, value=value):
                self._check(name in self.accumulators, s, f"{name} is no accumulator here")
                new = self.expression(value)
                self._check(new.dtype == self.scalars[name].dtype, s, f"{name} is {self.scalars[name].dtype}")
                self.scalars[name] = BINARY[op].function(self.scalars[name], new)
            case Alloc(buffer=buffer, shape=shape, dtype=dtype):
                self._check(buffer not in self.buffers, s, f"{buffer} hides another {buffer}")
                sizes = tuple(int(self.expression(n)) for n in shape)
                self.buffers[buffer], self.written[buffer] = np.zeros(sizes, dtype), np.zeros(sizes, bool)
                self.writable[buffer] = True
            case Store(buffer=buffer, index=index, value=value):
                new = self.expression(value)
                array, at = self._element(s, buffer, index)
                self._check(self.writable[buffer], s, f"{buffer} is an input")
                self._check(new.dtype == array.dtype, s, f"{buffer} is {array.dtype}, the value {new.dtype}")
                array[at] = new
                self.written[buffer][at] = True
            case _:
                raise AssertionError(s)

    def _leave(self, scalars: dict[str, Any], accumulators: set[str], buffers: set[str]) -> None:
        """Forget what a Seq declared; accumulators from around it keep what it added."""
        self.scalars = {name: value for name, value in self.scalars.items() if name in scalars}
        self.accumulators = accumulators
        for name in set(self.buffers) - buffers:
            del self.buffers[name], self.written[name], self.writable[name]
