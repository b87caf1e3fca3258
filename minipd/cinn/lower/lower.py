"""From a fusion group to a Function of the loop IR.

What comes out is the plainest loops that are right; making them fast is the schedule's work.

    outputs without reductions      a nest of their own, over their axes
    rows (kinds R, RC)              for each row, one pass over its elements per level of row reductions: what a
                                    reduction needs is computed in the pass that reduces, and again in later passes
    columns (kinds C, RC)           accumulators around the loop over rows, updated in it, read by nests after it

The *level* of a value is the number of row reductions that must be over before it is known.  A value is *late* if it
depends on a column reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.compute.table import Broadcast, Elementwise, Fill, Indexed, Reduction, compute_dtype
from minipd.cinn.ir.ast import (
    BOOL,
    INT64,
    Accumulate,
    Alloc,
    Const,
    Expr,
    For,
    Function,
    Init,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, identity, seq
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.lower.axes import Axes, Call, analyse, calls_of
from minipd.cinn.lower.errors import CannotLower
from minipd.cinn.lower.kinds import Split, splits
from minipd.cinn.lower.loops import Loop, Loops
from minipd.framework.dim import DimExpr, same
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["kind_of", "lower", "lower_group"]


def lower(op: Operation, name: str = "kernel") -> Function:
    """The function of a `cinn_op.fusion` operation: a parameter for each operand, then one for each result.

    Raises: CannotLower.
    """
    block, = op.blocks()
    ops = list(block)
    return lower_group(ops, op.operands_source(), ops[-1].operands_source(), name)


def lower_group(ops: Sequence[Operation], operands: Sequence[Value], results: Sequence[Value],
                name: str = "kernel") -> Function:
    """The same for operations that stand anywhere: `operands` is what they read from outside (tensors, in order),
    `results` which of their values are wanted."""
    return _first_that_fits(ops, operands, results, name)[1]


def kind_of(ops: Sequence[Operation], operands: Sequence[Value], results: Sequence[Value]) -> str:
    """The kind of the group: "E", "R", "C" or "RC".

    Raises: CannotLower if it is none.
    """
    return _first_that_fits(ops, operands, results, "kernel")[0]


def _first_that_fits(ops: Sequence[Operation], operands: Sequence[Value], results: Sequence[Value],
                     name: str) -> tuple[str, Function]:
    calls = calls_of(ops)
    axes = analyse(calls, operands)
    problems: list[str] = []
    for split in splits(axes, calls):
        for merge in (True, False):             # a merged axis hides symbols that a size may need
            try:
                loops = Loops(axes, split, operands, results, merge)
                return split.kind, _Lowering(axes, split, loops, calls, results).function(name)
            except CannotLower as problem:
                problems.append(str(problem))
    reductions = "; ".join(f"{c.name} of {c.operands[0].type()} to {c.results[0].type()}" for c in calls
                           if isinstance(c.compute, Reduction))
    raise CannotLower(problems[0] if problems else
                      f"its reductions fold axes that no one loop nest has as its rows or columns: {reductions}")


Env = dict[Value, Expr]


class _Lowering:
    def __init__(self, axes: Axes, split: Split, loops: Loops, calls: list[Call], results: Sequence[Value]):
        self.axes, self.split, self.loops, self.calls, self.results = axes, split, loops, calls, results
        self.level: dict[Value, int] = {}
        self.late: set[Value] = set()
        for call in calls:
            read = _read_operands(call)
            level = max((self.level.get(v, 0) for v in read), default=0) + (call.number in split.rows)
            late = call.number in split.columns or any(v in self.late for v in read)
            for v in call.results:
                self.level[v] = level
                if late:
                    self.late.add(v)
            if isinstance(call.compute, Reduction):
                self._check_reduction(call)

    def _check_reduction(self, call: Call) -> None:
        x = call.operands[0]
        op = call.compute.op  # type: ignore[union-attr]
        if x.dtype == BOOL or op not in ("add", "max", "min"):
            raise CannotLower(f"{call.name} of {x.dtype}")
        if op != "add" and any(same(a.size, 0) for a in self.axes.folded[call.number]):
            raise CannotLower(f"{call.name} of no elements: the library kernel raises for it")
        if x in self.late and call.number in self.split.rows | self.split.columns:
            raise CannotLower(f"{call.name} of what a reduction over rows gives: those are known after the last row")

    # ------------------------------------------------------------------------------------------------ function
    def function(self, name: str) -> Function:
        early: list[tuple[str, Value]] = []         # a nest of their own
        late: list[tuple[str, Value]] = []
        in_rows: list[tuple[str, Value]] = []
        everything = (*self.loops.outer, *self.loops.inner)
        for y, v in zip(self.loops.output_names, self.results, strict=True):
            own = self.loops.of(v)
            if v in self.late:
                if any(loop in self.loops.outer for loop in own):
                    raise CannotLower(f"a {v.type()} of every row depends on a reduction over all rows")
                late.append((y, v))
            elif self.split.kind != "E" and own in (everything, self.loops.outer):
                in_rows.append((y, v))
            elif self.level.get(v, 0) == 0:
                early.append((y, v))
            else:
                raise CannotLower(f"a {v.type()} depends on row reductions, but lacks some of the rows' axes")
        body = self._nests(early, {})
        if self.split.kind != "E":
            body += self._rows(in_rows) + self._nests(late, self._column_results())
        comment = tuple(call.name for call in self.calls if not isinstance(call.compute, Fill))
        return Function(name, self.loops.params, seq(body), comment)

    def _nests(self, outputs: list[tuple[str, Value]], known: Env) -> list[Stmt]:
        """For each set of axes that outputs have, one nest that computes them from the parameters and `known`."""
        by_loops: dict[tuple[Loop, ...], list[tuple[str, Value]]] = {}
        for y, v in outputs:
            by_loops.setdefault(self.loops.of(v), []).append((y, v))
        nests: list[Stmt] = []
        for own, wanted in by_loops.items():
            body: list[Stmt] = []
            env = dict(known)
            self._emit([v for _, v in wanted], env, body)
            body += [self._store(y, v, env) for y, v in wanted]
            nests.append(_nest(own, body))
        return nests

    # ---------------------------------------------------------------------------------------------------- rows
    def _rows(self, outputs: list[tuple[str, Value]]) -> list[Stmt]:
        before: list[Stmt] = []
        for call in self._reductions(self.split.columns):
            before += self._accumulator(call)
        row: list[Stmt] = []
        env: Env = {}
        inside = [(y, v) for y, v in outputs if not self._is_row_value(v)]
        for level in range(1 + max([0, *self.level.values()])):
            self._pass(level, [(y, v) for y, v in inside if self.level.get(v, 0) == level], env, row)
        at_row = [c for c in self._reductions(self.split.columns) if self._is_row_value(c.operands[0])]
        row_outputs = [(y, v) for y, v in outputs if self._is_row_value(v)]
        self._emit([v for _, v in row_outputs] + [c.operands[0] for c in at_row], env, row)
        row += [self._store(y, v, env) for y, v in row_outputs]
        row += [self._update(call, env) for call in at_row]
        return [*before, _nest(self.loops.outer, row)] if row else before

    def _pass(self, level: int, outputs: list[tuple[str, Value]], env: Env, row: list[Stmt]) -> None:
        """One loop over the elements of a row: the reductions and outputs of that level.  `env`: row values so far."""
        reductions = [c for c in self._reductions(self.split.rows) if self.level.get(c.operands[0], 0) == level]
        columns = [c for c in self._reductions(self.split.columns) if not self._is_row_value(c.operands[0])
                   and self.level.get(c.operands[0], 0) == level]
        if not (reductions or columns or outputs):
            return
        wanted = [c.operands[0] for c in (*reductions, *columns)] + [v for _, v in outputs]
        needed = self._needed(wanted, env)
        self._emit([v for c in needed for v in c.results if self._is_row_value(v)], env, row)
        row += [Init(_name(c), identity(c.compute.op, compute_dtype(c.results[0].dtype)))  # type: ignore[union-attr]
                for c in reductions]
        body: list[Stmt] = []
        inner = dict(env)
        self._emit(wanted, inner, body)
        body += [Accumulate(_name(c), c.compute.op, inner[c.operands[0]])  # type: ignore[union-attr, arg-type]
                 for c in reductions]
        body += [self._update(c, inner) for c in columns]
        body += [self._store(y, v, inner) for y, v in outputs]
        row.append(_nest(self.loops.inner, body))
        for c in reductions:
            env[c.results[0]] = Var(_name(c), compute_dtype(c.results[0].dtype))

    # ------------------------------------------------------------------------------------------------- columns
    def _accumulator(self, call: Call) -> list[Stmt]:
        start = identity(call.compute.op, compute_dtype(call.results[0].dtype))  # type: ignore[union-attr]
        own = self.loops.of(call.results[0])
        if not own:
            return [Init(_name(call), start)]
        at = tuple(Var(loop.var) for loop in own)
        return [Alloc(_name(call), tuple(loop.extent for loop in own), start.dtype),
                _nest(own, [Store(_name(call), at, start)])]

    def _update(self, call: Call, env: Env) -> Stmt:
        op, value = call.compute.op, env[call.operands[0]]  # type: ignore[union-attr]
        if not self.loops.of(call.results[0]):
            return Accumulate(_name(call), op, value)  # type: ignore[arg-type]
        at = self.loops.index(call.results[0])
        return Store(_name(call), at, binary(op, Load(_name(call), at, value.dtype), value))

    def _column_results(self) -> Env:
        """What the nests after the rows read."""
        env: Env = {}
        for call in self._reductions(self.split.columns):
            result, dtype = call.results[0], compute_dtype(call.results[0].dtype)
            at = self.loops.index(result)
            env[result] = Load(_name(call), at, dtype) if at else Var(_name(call), dtype)
        return env

    # ------------------------------------------------------------------------------------------------ elements
    def _needed(self, wanted: Sequence[Value], env: Env) -> list[Call]:
        """The calls that compute `wanted`, in order, but for what `env` has."""
        want = {v for v in wanted if v not in env}
        needed: list[Call] = []
        for call in reversed(self.calls):
            if any(v in want for v in call.results):
                needed.append(call)
                want.update(v for v in _read_operands(call) if v not in env)
        return needed[::-1]

    def _emit(self, wanted: Sequence[Value], env: Env, out: list[Stmt]) -> None:
        """Append Lets that compute one element of each wanted value; `env` learns the expressions."""
        for call in self._needed(wanted, env):
            for v in _read_operands(call):
                if v not in env:
                    env[v] = self._load(v, out)
            for k, (v, e) in enumerate(zip(call.results, self._element(call, env), strict=True)):
                if not isinstance(e, Const | Var) and not isinstance(call.compute, Broadcast):
                    name = _name(call, k)
                    out.append(Let(name, e))
                    e = Var(name, e.dtype)
                env[v] = e
        for v in wanted:
            if v not in env:
                env[v] = self._load(v, out)

    def _load(self, v: Value, out: list[Stmt]) -> Expr:
        param = self.loops.names.get(v)
        if param is None:
            raise CannotLower(f"a {v.type()} is neither an operand nor computed by the group, or only after its rows")
        name = f"v{param[1:]}"
        e = cast(Load(param, self.loops.index(v), v.dtype), compute_dtype(v.dtype))
        out.append(Let(name, e))
        return Var(name, e.dtype)

    def _element(self, call: Call, env: Env) -> tuple[Expr, ...]:
        match call.compute:
            case Fill(value=attribute, step=None):
                return (self._number(call.attrs[attribute], compute_dtype(call.results[0].dtype)),)
            case Fill(value=attribute, step=str(step)):
                start, step = call.attrs[attribute], call.attrs[step]
                exact = np.dtype("f8") if isinstance(start, float) or isinstance(step, float) else INT64
                first, by = self._number(start, exact), self._number(step, exact)
                at = self.loops.index(call.results[0])
                position = binary("add", first, binary("mul", cast(at[0], exact), by)) if at else first
                return (cast(simplify_expression(position), compute_dtype(call.results[0].dtype)),)
            case Broadcast():
                return (env[call.operands[0]],)
            case Indexed():
                raise CannotLower(f"{call.name} reads its operands at other places")
            case Reduction():
                if self.axes.folded[call.number]:
                    raise CannotLower(f"the result of {call.name} is read before its loop is over")
                return (env[call.operands[0]],)
            case Elementwise(formula=formula):
                try:
                    found = formula(*(Scalar(env[v]) for v in call.operands), **call.attrs)
                except TypeError as problem:
                    raise CannotLower(f"{call.name}: {problem}") from None
                elements = tuple(s.expr for s in (found if isinstance(found, tuple) else (found,)))
                for e, v in zip(elements, call.results, strict=True):
                    if e.dtype != compute_dtype(v.dtype):
                        raise CannotLower(f"{call.name}: an element of {v.type()} came out as {e.dtype}")
                return elements
        raise AssertionError(call)

    def _number(self, value: Any, dtype: np.dtype) -> Expr:
        """A number, or a symbolic size, in a dtype."""
        return cast(self.loops.size(value), dtype) if isinstance(value, DimExpr) else const(value, dtype)

    def _store(self, y: str, v: Value, env: Env) -> Stmt:
        return Store(y, self.loops.index(v), cast(env[v], v.dtype))

    def _is_row_value(self, v: Value) -> bool:
        return not any(loop in self.loops.inner for loop in self.loops.of(v))

    def _reductions(self, numbers: frozenset[int]) -> list[Call]:
        return [c for c in self.calls if c.number in numbers]


def _read_operands(call: Call) -> list[Value]:
    """The operands whose elements are read: not those of which only the shape counts."""
    assert call.op.row is not None
    return [v for i, v in enumerate(call.operands) if i not in call.op.row.shape_only]


def _name(call: Call, result: int = 0) -> str:
    return f"{call.name}_{call.number}" + (f"_{result}" if len(call.results) > 1 else "")


def _nest(loops: Sequence[Loop], body: list[Stmt]) -> Stmt:
    """`body` inside serial loops."""
    nest = seq(body)
    for loop in reversed(loops):
        nest = For(loop.var, loop.extent, nest)
    return nest
