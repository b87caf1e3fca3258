"""From a fusion group to a Function of the loop IR, in block form: one ScheduleBlock per operator.

Each operator is a nest of its own that fills a buffer of its own; outputs are written at the end, by blocks of their
own.  What should be one loop, and what needs no buffer, is for the schedule to say.

    x - max(x, axis=1)      nests of the blocks max_0__reduce_init, max_0, subtract_1 and y0, over (i), (i, j), (i, j)
                            and (i, j)

What only moves, repeats or makes up elements has no block: whoever reads it reads what it is made of, at the place
where that is.  So a transpose, a slice or an expand is an index, and a constant a number.  Pieces joined together
(concat) are a block with one arm for each piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.compute.table import Broadcast, Elementwise, Fill, Indexed, Piece, Reduction, compute_dtype
from minipd.cinn.ir.ast import (
    BOOL,
    INT64,
    Alloc,
    Expr,
    For,
    Function,
    IfThenElse,
    IterVar,
    Load,
    Reduce,
    ScheduleBlock,
    Seq,
    Stmt,
    Store,
    Var,
)
from minipd.cinn.ir.build import binary, cast, const, identity, select
from minipd.cinn.ir.simplify import simplify_expression
from minipd.cinn.ir.walk import buffers_read, statements
from minipd.cinn.lower.analysis import analyse
from minipd.cinn.lower.axes import Axes
from minipd.cinn.lower.calls import Call, calls_of
from minipd.cinn.lower.errors import CannotLower
from minipd.cinn.lower.loops import Iteration, Loop
from minipd.framework.dim import DimExpr, is_symbolic, prod, same
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["lower", "lower_group"]

#: what folds bools
OF_BOOLS = {"add": "or", "max": "or", "min": "and", "mul": "and", "or": "or", "and": "and"}
#: for each loop of a value, the index along it
At = dict[Loop, Expr]


def lower(op: Operation, name: str = "kernel", any_rows: bool = False) -> Function:
    """The function of a `cinn_op.fusion` operation: a parameter for each operand, then one for each result.

    any_rows: the function serves every number of rows (see `Iteration`), also where the group knows it.
    Raises: CannotLower.
    """
    block, = op.blocks()
    ops = list(block)
    return lower_group(ops, op.operands_source(), ops[-1].operands_source(), name, any_rows)


def lower_group(ops: Sequence[Operation], operands: Sequence[Value], results: Sequence[Value],
                name: str = "kernel", any_rows: bool = False) -> Function:
    """The same for operations that stand anywhere: `operands` is what they read from outside (tensors, in order),
    `results` which of their values are wanted."""
    calls = _needed(calls_of(ops), results)
    try:
        axes = analyse(calls, operands)
    except CannotLower:
        axes = analyse(calls, operands, crossings=True)
    try:
        return _Lowering(axes, Iteration(axes, operands, results, any_rows=any_rows), calls).function(name)
    except CannotLower:                         # a merged loop hides symbols that a size may need
        if not any(is_symbolic(v.shape) for v in (*operands, *results)):
            raise
    return _Lowering(axes, Iteration(axes, operands, results, merge=False, any_rows=any_rows), calls).function(name)


def _needed(calls: Sequence[Call], results: Sequence[Value]) -> list[Call]:
    """The calls that compute `results`, in order."""
    want = set(results)
    needed: list[Call] = []
    for call in reversed(calls):
        if not want.isdisjoint(call.results):
            needed.append(call)
            want.update(call.read)
    return needed[::-1]


class _Lowering:
    def __init__(self, axes: Axes, loops: Iteration, calls: list[Call]):
        self.axes, self.loops, self.calls = axes, loops, calls
        self.allocs: list[Alloc] = []
        self.nests: list[Stmt] = []
        #: the buffers of values, and what stands for an element of a value that has none
        self.buffers: dict[Value, str] = {}
        self.elements: dict[Value, Callable[[At], Expr]] = {}

    def function(self, name: str) -> Function:
        for call in self.calls:
            match call.compute:
                case Elementwise():
                    self._elementwise(call)
                case Reduction(op=op):
                    self._reduction(call, op)
                case Broadcast():
                    self._seen_otherwise(call)
                case Indexed():
                    self._indexed(call)
                case Fill():
                    self._fill(call)
        for y, v in self.loops.outputs:
            at = self._here(v)
            self._block(y, self.loops.of(v), Store(y, self._place(v, at), cast(self._read(v, at), v.dtype)))
        comment = tuple(call.name for call in self.calls if not isinstance(call.compute, Fill))
        return Function(name, self.loops.params, Seq(self._read_by_some_output()), comment)

    def _read_by_some_output(self) -> tuple[Stmt, ...]:
        """All that is to run: where one element is folded, argmax reads nothing, and so nobody may read its operand."""
        wanted = {p.name for p in self.loops.params if p.output}
        nests: list[Stmt] = []
        for nest in reversed(self.nests):
            if any(isinstance(x, Store | Reduce) and x.buffer in wanted for x in statements(nest)):
                nests.append(nest)
                wanted |= buffers_read(nest)
        return (*(a for a in self.allocs if a.buffer in wanted), *reversed(nests))

    # ------------------------------------------------------------------------------------------------ operators
    def _elementwise(self, call: Call) -> None:
        assert isinstance(call.compute, Elementwise)
        for result in call.results:             # of one shape each, though not always of one shape all
            at = self._here(result)
            read = [Scalar(self._read(x, self._aligned(x, result, at))) for x in call.operands]
            try:
                found = call.compute.formula(*read, **call.attrs)
            except TypeError as problem:
                raise CannotLower(f"{call.name}: {problem}") from None
            k = call.results.index(result)
            value = (found if isinstance(found, tuple) else (found,))[k].expr
            if value.dtype != compute_dtype(result.dtype):
                raise CannotLower(f"{call.name}: an element of {result.type()} came out as {value.dtype}")
            buffer = self._buffer(call, k)
            self._block(buffer, self.loops.of(result), Store(buffer, tuple(at.values()), value))

    def _reduction(self, call: Call, op: str) -> None:
        x, result = call.operands[0], call.results[0]
        folded = self.axes.folded[call.number]
        if x.dtype == BOOL:
            op = OF_BOOLS.get(op, op)
        if op in ("max", "min", "argmax", "argmin") and any(same(a.size, 0) for a in folded):
            raise CannotLower(f"{call.name} of no elements: the library kernel raises for it")
        dtype = compute_dtype(result.dtype)
        at = self._here(x)
        if op.startswith("arg"):
            self._first_extreme(call, op.removeprefix("arg"), at)
        elif folded:
            self._fold(self._buffer(call), call, op, cast(self._read(x, at), dtype))
        else:                                   # over dimensions of size 1
            self.elements[result] = lambda at: cast(self._read(x, at), dtype)

    def _fold(self, buffer: str, call: Call, op: str, value: Expr) -> None:
        """Two blocks: the buffer, which has the result's axes, is `op` of the values at all places of the operand."""
        around, folded = self.loops.of(call.operands[0]), self.axes.folded[call.number]
        kept = tuple(loop for loop in around if not folded.intersection(loop.axes))
        where = tuple(loop.var for loop in self.loops.of(call.results[0]))
        self._block(f"{buffer}__reduce_init", kept, Store(buffer, where, identity(op, value.dtype)))
        self._block(buffer, around, Reduce(buffer, where, op, value), frozenset(around) - frozenset(kept))

    def _first_extreme(self, call: Call, op: str, at: At) -> None:
        """The extreme first, then the least position that has it; a NaN is the extreme of all it is among."""
        x, result = call.operands[0], call.results[0]
        folded = tuple(loop for loop in self.loops.of(x) if self.axes.folded[call.number].intersection(loop.axes))
        if not folded:
            self.elements[result] = lambda at: const(0, result.dtype)
            return
        value = self._read(x, at)
        if value.dtype == BOOL:
            value = cast(value, np.dtype(np.int8))
        extreme = f"{call.name}_{call.number}_{op}"
        around = self.loops.of(result)
        self.allocs.append(Alloc(extreme, tuple(map(self.loops.extent, around)), value.dtype))
        self._fold(extreme, call, op, value)
        best = binary("eq", value, Load(extreme, tuple(loop.var for loop in around), value.dtype))
        if value.dtype.kind == "f":
            best = binary("or", best, binary("ne", value, value))
        position = cast(self._number_within(folded, at), result.dtype)
        self._fold(self._buffer(call), call, "min", select(best, position, identity("min", result.dtype)))

    def _seen_otherwise(self, call: Call) -> None:
        x, result = call.operands[0], call.results[0]
        assert isinstance(call.compute, Broadcast)
        dims = call.compute.dims(call.attrs, x.shape, result.shape)
        if dims is not None:
            back = {d: e for e, d in enumerate(dims) if d is not None}
            self.elements[result] = lambda at: self._read(x, self._carried(x, result, back, at))
        elif call.number not in self.axes.crossed:
            self.elements[result] = lambda at: self._read(x, {loop: at[loop] for loop in self.loops.of(x)})
        else:
            def reshaped(at: At) -> Expr:
                number = self._number_within(self.loops.of(result), at)
                return self._read(x, self._spread(self.loops.of(x), number))
            self.elements[result] = reshaped

    def _indexed(self, call: Call) -> None:
        for k, result in enumerate(call.results):
            pieces = call.pieces(k)
            if len(pieces) == 1 and pieces[0].where is None:
                self.elements[result] = lambda at, result=result, piece=pieces[0]: (  # type: ignore[misc]
                    self._piece(call, result, piece, at))
                continue
            buffer = self._buffer(call, k)
            at = self._here(result)
            body: Stmt | None = None
            for piece in reversed(pieces):
                store = Store(buffer, tuple(at.values()), self._piece(call, result, piece, at))
                if piece.where is None:
                    body = store
                else:
                    cond = simplify_expression(piece.where(_At(self, result, at)).expr)
                    body = IfThenElse(cond, store, body)
            assert body is not None
            self._block(buffer, self.loops.of(result), body)

    def _piece(self, call: Call, result: Value, piece: Piece, at: At) -> Expr:
        """An element of a result that lies in a piece of it."""
        dtype = compute_dtype(result.dtype)
        if piece.operand is None:
            return self._constant(piece.value, dtype)
        x = call.operands[piece.operand]
        here = _At(self, result, at)
        back = {d: e for d, e in enumerate(piece.places) if isinstance(e, int)}
        there = self._carried(x, result, back, at)
        for d, place in enumerate(piece.places):
            if not isinstance(place, int) and self.axes.of[x][d]:
                there |= self._spread(self.loops.within(x, d), simplify_expression(place(here).expr))
        return cast(self._read(x, there), dtype)

    def _fill(self, call: Call) -> None:
        assert isinstance(call.compute, Fill)
        result, attrs, (value, step) = call.results[0], call.attrs, call.compute
        dtype = compute_dtype(result.dtype)
        if step is None:
            number = self._constant(attrs[value], dtype)
            self.elements[result] = lambda at: number
            return
        exact = np.dtype("f8") if isinstance(attrs[value], float) or isinstance(attrs[step], float) else INT64
        first, by = self._constant(attrs[value], exact), self._constant(attrs[step], exact)

        def counted(at: At) -> Expr:
            n = self._number_within(self.loops.of(result), at)
            return cast(simplify_expression(binary("add", first, binary("mul", cast(n, exact), by))), dtype)
        self.elements[result] = counted

    def _constant(self, value: Any, dtype: np.dtype) -> Expr:
        """A number, or a symbolic size, in a dtype."""
        return cast(self.loops.size(value), dtype) if isinstance(value, DimExpr) else const(value, dtype)

    # --------------------------------------------------------------------------------------------------- blocks
    def _buffer(self, call: Call, k: int = 0) -> str:
        """A buffer for a result of a call."""
        result = call.results[k]
        name = f"{call.name}_{call.number}" + (f"_{k}" if k else "")
        shape = tuple(self.loops.extent(loop) for loop in self.loops.of(result))
        self.allocs.append(Alloc(name, shape, compute_dtype(result.dtype)))
        self.buffers[result] = name
        return name

    def _block(self, name: str, around: Sequence[Loop], body: Stmt, folded: frozenset[Loop] = frozenset()) -> None:
        """A nest of its own for a block that speaks of the iter vars of the loops `around` it."""
        iter_vars = tuple(IterVar(loop.var.name, self.loops.extent(loop), "R" if loop in folded else "S")
                          for loop in around)
        values = tuple(Var(f"{loop.letter}_{name}") for loop in around)
        nest: Stmt = ScheduleBlock(name, iter_vars, values, body)
        for loop in reversed(around):
            nest = For(f"{loop.letter}_{name}", self.loops.extent(loop), nest)
        self.nests.append(nest)

    # ------------------------------------------------------------------------------------------------- elements
    def _here(self, v: Value) -> At:
        return {loop: loop.var for loop in self.loops.of(v)}

    def _read(self, v: Value, at: At) -> Expr:
        """An element of a value, in its compute dtype."""
        dtype = compute_dtype(v.dtype)
        if v in self.elements:
            return self.elements[v](at)
        if v in self.buffers:
            return Load(self.buffers[v], tuple(at[loop] for loop in self.loops.of(v)), dtype)
        if v not in self.loops.inputs:
            raise CannotLower(f"a {v.type()} is neither an operand nor computed by the group")
        return cast(Load(self.loops.inputs[v], self._place(v, at), v.dtype), dtype)

    def _place(self, array: Value, at: At) -> tuple[Expr, ...]:
        """The index in an array of the caller."""
        return tuple(at[axis[0]] if len(axis) == 1 else self._number_within(axis, at)
                     for axis in self.loops.axes_of(array))

    def _aligned(self, x: Value, result: Value, at: At) -> At:
        """Where an element-wise formula reads an operand: aligned to the right."""
        lead = len(result.shape) - len(x.shape)
        return self._carried(x, result, {d: d + lead for d in range(len(x.shape))}, at)

    def _carried(self, x: Value, result: Value, back: dict[int, int], at: At) -> At:
        """The index of x whose dimension d is at the position of the result's dimension back[d]."""
        there: At = {}
        for d, e in back.items():
            own, others = self.axes.of[x][d], self.axes.of[result][e]
            if own == others:
                there.update((loop, at[loop]) for loop in self.loops.within(x, d))
            elif own:                           # crossed
                there |= self._spread(self.loops.within(x, d), self._position(result, e, at))
        return there

    def _position(self, v: Value, dim: int, at: At) -> Expr:
        """The position along one dimension."""
        return self._number_within(self.loops.within(v, dim), at)

    def _number_within(self, loops: Sequence[Loop], at: At) -> Expr:
        """The number of an iteration of a nest of loops."""
        number: Expr = const(0, INT64)
        for n, loop in enumerate(loops):
            inside = self.loops.size(prod(a.size for x in loops[n + 1:] for a in x.axes))
            number = binary("add", number, binary("mul", at[loop], inside))
        return simplify_expression(number)

    def _spread(self, loops: Sequence[Loop], number: Expr) -> At:
        """The iteration of that number, back in terms of each loop."""
        found: At = {}
        for n, loop in enumerate(loops):
            inside = self.loops.size(prod(a.size for x in loops[n + 1:] for a in x.axes))
            index = binary("floordiv", number, inside)
            if n:
                index = binary("mod", index, self.loops.extent(loop))
            found[loop] = simplify_expression(index)
        return found


class _At:
    """`compute.table.Positions`: where an element of a result is."""

    def __init__(self, lowering: _Lowering, value: Value, at: At):
        self._lowering, self._value, self._at = lowering, value, at

    def __getitem__(self, dim: int) -> Scalar:
        return Scalar(self._lowering._position(self._value, dim, self._at))

    def size(self, n: Any) -> Scalar:
        return Scalar(self._lowering.loops.size(n))
