"""What a Function means: slow, and strict about everything that a kernel would do silently.

Scalars are numpy scalars of the exact dtype.  Every index is checked against the bounds of its buffer (negative ones
are errors too), every name against its scope, and every element of a local array or an output that is read must have
been written; outputs must be written in full.

Loops run in order, and those of threads as `threads` says; but iterations that might run at once, and touch what one of
them writes, are an error (`races`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from minipd.cinn.ir.ast import (
    BLOCK_AXES,
    CALLS,
    THREAD_AXES,
    Accumulate,
    Alloc,
    Binary,
    Call,
    Cast,
    Const,
    Dim,
    Expr,
    For,
    Function,
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
    SyncThreads,
    Unary,
    Var,
    viewed,
)
from minipd.cinn.ir.operators import BINARY, UNARY
from minipd.cinn.ir.printer import text
from minipd.cinn.ir.races import Log, Place
from minipd.cinn.ir.threads import Event, Threads

__all__ = ["LoopError", "interpret"]


class LoopError(Exception):
    """A Function that does what no kernel may do; the message quotes the expression or statement."""


def interpret(function: Function, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
              shuffle: int | None = None) -> None:
    """Run a function: `outputs` are written into.

    inputs, outputs: one array per parameter, in order, contiguous where a parameter has a view.
    shuffle: a seed, with which the iterations of parallel loops and the threads of a GPU run in a random order.
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
    run = _Run(None if shuffle is None else np.random.default_rng(shuffle))
    for p, array in zip(function.params, arrays, strict=True):
        buffer = viewed(p, array)
        if buffer.ndim != p.ndim or buffer.dtype != p.dtype:
            raise LoopError(f"{function.name}: parameter {p.name} is {p.dtype} with {p.ndim} axes, got {buffer.dtype} "
                            f"with {buffer.ndim}")
        run.buffers[p.name] = buffer
        run.written[p.name] = np.full(buffer.shape, not p.output)
        run.logs[p.name] = Log() if p.output else None
    with np.errstate(all="ignore"):
        run.statement(function.body)
    for p in function.params:
        if not run.written[p.name].all():
            first = tuple(int(i) for i in np.argwhere(~run.written[p.name])[0])
            raise LoopError(f"{function.name}: output {p.name} is not written at {list(first)}")


@dataclass
class _Own:
    """An array of which each GPU block ("shared") or each thread ("local") has its own: by owner, (array, written,
    log)."""

    alloc: Alloc
    shape: tuple[int, ...]
    of: dict[object, tuple[np.ndarray, np.ndarray, Log]] = field(default_factory=dict)

    def for_owner(self, owner: object) -> tuple[np.ndarray, np.ndarray, Log]:
        if owner not in self.of:
            self.of[owner] = np.zeros(self.shape, self.alloc.dtype), np.zeros(self.shape, bool), Log()
        return self.of[owner]


class _Run:
    def __init__(self, rng: np.random.Generator | None) -> None:
        self.rng = rng
        self.buffers: dict[str, np.ndarray] = {}
        #: for each buffer, which of its elements have a value
        self.written: dict[str, np.ndarray] = {}
        #: for each buffer, who touched it; None for inputs
        self.logs: dict[str, Log | None] = {}
        self.own: dict[str, _Own] = {}
        self.scalars: dict[str, Any] = {}
        self.accumulators: set[str] = set()
        self.loop_vars: set[str] = set()
        #: the iterations of concurrent loops that run now; for those bound to a GPU axis, the axis and the iteration
        self.place: Place = ()
        self.axes: tuple[tuple[str, int, int], ...] = ()
        self.executions = 0             # of concurrent loops, so far
        self.threads = Threads(self)

    # ------------------------------------------------------------------------------------------- expressions
    def expression(self, e: Expr) -> Any:
        match e:
            case Const(value=value, dtype=dtype):
                return np.asarray(value).astype(dtype)[()]
            case Var(name=name, dtype=dtype):
                self._check(name in self.scalars, e, "it has no value here")
                held = self.scalars[name]
                if held.dtype != dtype:
                    self._refuse(e, f"{name} is {held.dtype}, read as {dtype}")
                return held
            case Load(buffer=buffer, index=index, dtype=dtype):
                array, at = self._element(e, buffer, index)
                if array.dtype != dtype:
                    self._refuse(e, f"{buffer} is {array.dtype}, read as {dtype}")
                return self._read(e, buffer, array, at)
            case Dim(param=param, axis=axis):
                self._check(param in self.buffers and axis < self.buffers[param].ndim, e, "no such axis")
                return np.int64(self.buffers[param].shape[axis])
            case Unary(op=op, x=x):
                return UNARY[op].function(self.expression(x))
            case Binary(op=op, x=x, y=y):
                a, b = self.expression(x), self.expression(y)
                if op in ("mod", "floordiv") and e.dtype.kind != "f" and b == 0:
                    self._refuse(e, "division by 0")
                return BINARY[op].function(a, b)
            case Select(cond=cond, x=x, y=y):
                c, a, b = self.expression(cond), self.expression(x), self.expression(y)
                return a if c else b
            case Cast(x=x, dtype=dtype):
                return self.expression(x).astype(dtype)
            case Call(name=name, args=args, dtype=dtype):
                return dtype.type(CALLS[name](*map(self.expression, args)))
        raise AssertionError(e)

    def _element(self, where: Expr | Stmt, buffer: str, index: tuple[Expr, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
        self._check(buffer in self.buffers, where, f"no buffer {buffer} here")
        array = self.buffers[buffer]
        at = tuple(int(self.expression(i)) for i in index)
        self._check(len(at) == array.ndim, where, f"{buffer} has {array.ndim} axes")
        self._check(all(0 <= i < n for i, n in zip(at, array.shape, strict=True)), where,
                    f"{list(at)} is outside {buffer}, whose shape is {list(array.shape)}")
        return array, at

    def _read(self, where: Expr | Stmt, buffer: str, array: np.ndarray, at: tuple[int, ...]) -> Any:
        if not self.written[buffer][at]:
            self._refuse(where, f"{buffer}{list(at)} is read before it is written")
        log = self.logs[buffer]
        if self.place and log is not None and not log.read(at, (self.place, self.threads.phase)):
            self._refuse(where, f"{buffer}{list(at)} is written in another iteration, which may run at the same time")
        return array[at]

    def _write(self, where: Stmt, buffer: str, index: tuple[Expr, ...], new: Any, op: str | None) -> None:
        """buffer[index] = new, or buffer[index] op new."""
        array, at = self._element(where, buffer, index)
        log = self.logs[buffer]
        if log is None:
            self._refuse(where, f"{buffer} is an input")
        if new.dtype != array.dtype:
            self._refuse(where, f"{buffer} is {array.dtype}, the value {new.dtype}")
        if op is not None:
            new = BINARY[op].function(self._read(where, buffer, array, at), new)
        if self.place and not log.write(at, (self.place, self.threads.phase)):
            self._refuse(where, f"{buffer}{list(at)} is read or written in another iteration, which may run at the "
                         "same time")
        array[at] = new
        self.written[buffer][at] = True

    def _check(self, condition: bool, where: Expr | Stmt, problem: str) -> None:
        if not condition:
            self._refuse(where, problem)

    @staticmethod
    def _refuse(where: Expr | Stmt, problem: str) -> NoReturn:
        raise LoopError(f"{text(where)}: {problem}")

    # -------------------------------------------------------------------------------------------- statements
    def statement(self, s: Stmt) -> None:
        """Run s outside of threads: all that it starts have ended when it ends."""
        for _ in self.steps(s):
            self._check(bool(self.axes), SyncThreads(), "there are no threads here")

    def steps(self, s: Stmt) -> Iterator[Event]:
        """Run s, and hand over at each barrier, and at each loop of threads that threads run into."""
        match s:
            case Seq(stmts=stmts):
                declares = any(isinstance(x, Let | Init | Alloc) for x in stmts)
                before = self._names() if declares else ()
                for x in stmts:
                    if isinstance(x, Let | Init | Accumulate | Alloc | Store | Reduce):
                        self._simple(x)
                    else:
                        yield from self.steps(x)
                if declares:
                    self._leave(*before)
            case For(var=var):
                self._check(var not in self.scalars, s, f"{var} hides another {var}")
                yield from self._loop(s)
            case IfThenElse(cond=cond, then=then, orelse=orelse):
                arm = then if self.expression(cond) else orelse
                if arm is not None:
                    yield from self.steps(Seq((arm,)))
            case ScheduleBlock():
                if s.predicate is None or self.expression(s.predicate):
                    self._block(s)
            case SyncThreads():
                yield s
            case _:
                self._simple(s)

    def _simple(self, s: Stmt) -> None:
        match s:
            case Let(name=name, value=value) | Init(name=name, value=value):
                self._check(name not in self.scalars, s, f"{name} hides another {name}")
                self.scalars[name] = self.expression(value)
                if isinstance(s, Init):
                    self.accumulators.add(name)
            case Accumulate(name=name, op=op, value=value):
                self._check(name in self.accumulators, s, f"{name} is no accumulator here")
                new = self.expression(value)
                if new.dtype != self.scalars[name].dtype:
                    self._refuse(s, f"{name} is {self.scalars[name].dtype}")
                self.scalars[name] = BINARY[op].function(self.scalars[name], new)
            case Alloc(buffer=buffer):
                self._check(buffer not in self.buffers, s, f"{buffer} hides another {buffer}")
                self._allocate(s)
            case Store(buffer=buffer, index=index, value=value):
                self._write(s, buffer, index, self.expression(value), None)
            case Reduce(buffer=buffer, index=index, op=op, value=value):
                self._write(s, buffer, index, self.expression(value), op)
            case _:
                raise AssertionError(s)

    def _names(self) -> tuple[set[str], ...]:
        return set(self.scalars), set(self.buffers), set(self.own)

    def _leave(self, scalars: set[str], buffers: set[str], own: set[str]) -> None:
        """Forget what a Seq declared; accumulators from around it keep what it added."""
        for known, before in ((self.scalars, scalars), (self.buffers, buffers), (self.written, buffers),
                              (self.logs, buffers), (self.own, own)):
            for name in known.keys() - before:
                del known[name]  # type: ignore[attr-defined]
        self.accumulators &= scalars

    # ------------------------------------------------------------------------------------------------- loops
    def _loop(self, s: For) -> Iterator[Event]:
        extent = int(self.expression(s.extent))
        if s.kind in THREAD_AXES:
            self._check(all(axis != s.kind for axis, _, _ in self.axes), s, f"it is inside a loop over {s.kind}")
            yield from self.threads.loop(s, extent)
            return
        if s.kind in BLOCK_AXES:
            self._check(all(axis != s.kind and axis in BLOCK_AXES for axis, _, _ in self.axes), s,
                        f"it is inside a loop over {s.kind} or over threads")
        self.executions += 1
        execution, place, axes = self.executions, self.place, self.axes
        concurrent = s.kind == "parallel" or s.kind in BLOCK_AXES
        order: Any = range(extent)
        if concurrent and self.rng is not None:
            order = self.rng.permutation(extent)
        body = s.body if isinstance(s.body, Seq | For) else Seq((s.body,))
        for i in order:
            if concurrent:
                self.place = (*place, (execution, int(i), False))
            if s.kind in BLOCK_AXES:
                self.enter((*axes, (s.kind, execution, int(i))))
            self.scalars[s.var] = np.int64(i)
            self.loop_vars.add(s.var)
            yield from self.steps(body)
            self.scalars.pop(s.var)
        self.place = place
        if s.kind in BLOCK_AXES:
            self.enter(axes)

    def _block(self, s: ScheduleBlock) -> None:
        """The body knows the iter vars, and not the loops."""
        around = self.scalars
        inside = {name: value for name, value in around.items() if name not in self.loop_vars}
        for v, value in zip(s.iter_vars, s.iter_values, strict=True):
            at, extent = self.expression(value), self.expression(v.extent)
            self._check(v.name not in around, s, f"{v.name} hides another {v.name}")
            if not 0 <= at < extent:
                self._refuse(s, f"{v.name} is {at}, outside of its extent {extent}")
            inside[v.name] = np.int64(at)
        self.scalars = inside
        self.statement(Seq((s.body,)))
        self.scalars = around

    # ---------------------------------------------------------------------------------------------- GPU memory
    def _allocate(self, s: Alloc) -> None:
        in_threads = any(axis in THREAD_AXES for axis, _, _ in self.axes)
        self._check(not (in_threads and s.memory == "shared"), s, "shared memory belongs around the loops over threads")
        sizes = tuple(int(self.expression(n)) for n in s.shape)
        mine = _Own(s, sizes)
        if s.memory != "global" and not in_threads:
            self.own[s.buffer] = mine
        self._use(s.buffer, mine)

    def _use(self, name: str, own: _Own) -> None:
        owner = tuple((axis, execution if axis in BLOCK_AXES else 0, i) for axis, execution, i in self.axes
                      if own.alloc.memory == "local" or axis in BLOCK_AXES)
        self.buffers[name], self.written[name], self.logs[name] = own.for_owner(owner)

    def enter(self, axes: tuple[tuple[str, int, int], ...]) -> None:
        """Go on as another GPU block, or another thread of one."""
        self.axes = axes
        for name, own in self.own.items():
            self._use(name, own)
