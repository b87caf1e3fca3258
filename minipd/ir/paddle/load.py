"""Paddle's form -> ours.

Shapes are not taken from the text, which knows unknown sizes as -1 only: inputs get symbols, and everything else is
inferred again, call by call.  What an operator reads is a call of our rows, written by its form; an operator that we do
not have stays, and is refused when it would run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minipd.framework.context import using
from minipd.framework.dim import DimExpr, fresh_symbols
from minipd.framework.row import ROWS, Row
from minipd.framework.tensor import Tensor
from minipd.ir.attributes import Attribute
from minipd.ir.block import Block
from minipd.ir.builder import Builder
from minipd.ir.builtin import origin
from minipd.ir.dialect import COMMON_ATTRIBUTES
from minipd.ir.operation import Operation
from minipd.ir.paddle.form import LOADS
from minipd.ir.paddle.in_place import state_name, write_operands, write_state, writes_outside
from minipd.ir.paddle.numbers import reckon
from minipd.ir.paddle.reasons import REASONS, SOME_CALLS, kept_name, our_name
from minipd.ir.paddle.save import problem
from minipd.ir.paddle.signatures import REQUIRED, signature
from minipd.ir.paddle.structure import STRUCTURE
from minipd.ir.program import Program
from minipd.ir.schema import constant_of, vector_result
from minipd.ir.trace import Trace
from minipd.ir.types import NullType, TensorType
from minipd.ir.value import Value

__all__ = ["Loader", "from_paddle"]


class NotOurs(Exception):
    """A form finds that it has no meaning for this operation, which stays as it is."""


def from_paddle(program: Program) -> Program:
    """The program in our form.

    Operators that we do not have stay as they are, unregistered.  Operands that the form knows as attributes only (an
    axis) must be constants; else the operation stays too.
    Raises: ValueError where shapes do not fit together.
    """
    if program.form == "minipd":
        return program
    loader = Loader(program)
    with loader.program.constraints.collect():
        loader.blocks(program.global_block(), loader.program.global_block())
        write_state(loader, program)
        loader.sweep()
    return loader.program


class Loader:
    """The new program, and the values that are there.

    values: Paddle's value -> ours.  vectors: a vector of Paddle's -> its members.  numbers: a value of few integers ->
    what it always holds, symbols among it: how shapes that a program computes become attributes.
    """

    def __init__(self, source: Program):
        self.program, self.rings = Program(), source.rings
        self.tracer = LoadTrace(self.program)
        self.values: dict[Value, Value] = {}
        self.vectors: dict[Value, list[Value]] = {}
        self.numbers: dict[Value, Any] = {}
        self.absent: set[Value] = set()             # results of Paddle's that ours do not have (a mask, a reserve)
        self.constants: list[Operation] = []
        self.readers: dict[Operation, Operation | None] = {}        # what reads state -> ours
        self.symbols: Iterator[DimExpr] = fresh_symbols(
            v.type().shape for v in source.list_vars() if isinstance(v.type(), TensorType))  # type: ignore[attr-defined]
        self.given: dict[DimExpr, DimExpr] = {}

    @property
    def build(self) -> Builder:
        return self.tracer.build

    # -------------------------------------------------------------------------------------------- structure
    def blocks(self, source: Block, target: Block) -> None:
        for op in source.ops:
            self.build.set_insertion_point_to_block_end(target)
            self.tracer.common = {k: a for k, a in op.attributes.items() if k in COMMON_ATTRIBUTES}
            results = self.operation(op)
            for old, new in zip(op.results(), results, strict=True):
                if new is None:
                    if old not in self.vectors:
                        self.absent.add(old)
                    continue
                self.values[old] = new
                for flag in ("stop_gradient", "persistable"):
                    said = old.attribute(flag)
                    if said is not None and new.attribute(flag) != said:
                        new.set_attribute(flag, said)
            if state_name(op) is not None:
                self.readers[op] = self.values[op.result(0)].get_defining_op()
            write_operands(self, op)

    def operation(self, op: Operation) -> Sequence[Value | None]:
        """Our values for the results of one operation; None for one that is absent, or a vector."""
        from minipd.ir.paddle.gradients import gradient_of  # which reads forward calls with a loader
        name = op.name()
        if name in STRUCTURE:
            return STRUCTURE[name](self, op)
        dialect, _, short = name.partition(".")
        load = LOADS.get(short) if dialect == "pd_op" else None
        if load is None and dialect == "pd_op":
            row = ROWS.get(short)
            load = same if row is not None and problem(row) is None else gradient_of(short)
        before = self.build.block.back()
        try:
            if row_stays(op):
                return self.values_of(op)
            if load is not None and all(self.known(v) for v in op.operands_source()) and not writes_outside(op):
                results = load(self, op)
                self.flag(self.build.block.front() if before is None else before.next)
                reckon(self, op)
                return [results] if isinstance(results, Value) else list(results)
        except NotOurs:
            while self.build.block.back() is not before:        # what the form has written until then
                last = self.build.block.back()
                assert last is not None
                last.erase()
        return self.copy(op)

    def flag(self, op: Operation | None) -> None:
        """Let gradients flow through this operation and all behind it that read something that wants one.

        (What stands for one of Paddle's results gets the flag of that one afterwards.)
        """
        while op is not None:
            for result in op.results():
                result.stop_gradient = all(v.stop_gradient for v in op.operands_source())
            op = op.next

    def values_of(self, op: Operation) -> list[Value | None]:
        """A row of ours that Paddle has nothing for, as it is, sizes inferred again."""
        row = ROWS[op.name().partition(".")[2]]
        values = [v for x in op.operands_source() for v in self.tensors(x)]
        attrs = {k: a.value for k, a in op.attributes.items() if k in row.attrs}
        results = self.row(row.name, *values[:len(values) - len(row.mutable)], **attrs)
        return list(results) if isinstance(results, tuple) else [results]

    def known(self, value: Value | None) -> bool:
        return value is None or value in self.values or value in self.vectors or value in self.absent

    def lacks(self, value: Value) -> bool:
        """Whether ours have nothing for a value, or for a member of a vector."""
        return value in self.absent or value not in self.values and any(
            v in self.absent for v in self.vectors.get(value, ()))

    def copy(self, op: Operation) -> Sequence[Value | None]:
        """The operation as it is; regions are translated."""
        operands: list[Any] = [None if v is None or self.lacks(v) else self.value(v) for v in op.operands_source()]
        new = self.build.build(kept_name(op.name()), operands, dict(op.attributes), [r.type() for r in op.results()],
                               op.num_regions())
        for old, region in zip(op.regions, new.regions, strict=True):
            for block in old.blocks:
                inner = region.add_block()
                for arg in block.args():
                    self.argument(arg, inner, arg.type())
                with self.tracer.inside(inner):
                    self.blocks(block, inner)
        for old_result, result in zip(op.results(), new.results(), strict=True):
            if isinstance(result.type(), NullType):
                self.values[old_result] = result
        return new.results()

    def argument(self, arg: Any, inner: Block, type: Any) -> None:
        new = inner.add_arg(type)
        new.attributes.update(arg.attributes)
        self.values[arg] = new

    def sweep(self) -> None:
        """Erase the constants that have become attributes."""
        for op in reversed(self.constants):
            if all(r.use_empty() for r in op.results()):
                op.erase()

    # ------------------------------------------------------------------------------------------- for forms
    def value(self, value: Value) -> Value:
        """Our value for one of Paddle's.

        Raises: NotOurs for a result that ours do not have.
        """
        if value in self.absent:
            raise NotOurs
        if value in self.vectors and value not in self.values:
            self.values[value] = self.build.combine([self.value(v) for v in self.vectors[value]])
        return self.values[value]

    def tensors(self, value: Value) -> list[Value]:
        """The members of a vector, or the one tensor; none if it is absent."""
        if value is None:
            return []
        return [self.value(v) for v in self.vectors[value]] if value in self.vectors else [self.value(value)]

    def constant(self, value: Value) -> Any:
        """What an operand that is an attribute of ours always holds.

        Raises: NotOurs if that is not known.
        """
        if value in self.numbers:
            return self.numbers[value]
        if value in self.vectors:
            parts = [self.constant(v) for v in self.vectors[value]]
            return tuple(p[0] if isinstance(p, tuple) else p for p in parts)
        value = origin(value)                   # Paddle pushes constants, too
        found = constant_of(value)
        if found is None:
            raise NotOurs
        op = value.get_defining_op()
        if op is not None and op.name() == "pd_op.full" and value.dtype.kind in "iu":
            found = int(found)
        return found

    def attrs(self, op: Operation) -> dict[str, Any]:
        """All attributes of Paddle's operator, defaults and operands included, as Python values."""
        found = signature(op.name().partition(".")[2])
        assert found is not None
        values = {k: d.value for k, (_, d) in found.attrs.items() if d is not REQUIRED}
        values |= {k: a.value for k, a in op.attributes.items() if k in found.attrs}
        for operand, value in zip(found.operands, op.operands_source(), strict=True):
            if operand.kind:
                values[operand.name] = operand.default.value if value is None else self.constant(value)
        return values

    def inputs(self, op: Operation) -> list[Any]:
        """The operands that are tensors, as ours; None where absent, a list where there are several."""
        found = signature(op.name().partition(".")[2])
        assert found is not None
        return [None if v is None or v in self.absent else self.tensors(v) if v in self.vectors else self.value(v)
                for o, v in zip(found.operands, op.operands_source(), strict=True) if not o.kind]

    def row(self, name: str, *values: Any, **attrs: Any) -> Any:
        """Append a call of one of our rows; returns its result, or the tuple of its results."""
        row = ROWS[name]
        results = self.tracer.run(row, values, attrs)
        return results

    def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call one of our functions on values; returns values."""
        def wrap(x: Any) -> Any:
            return [wrap(v) for v in x] if isinstance(x, list) else Tensor(x) if isinstance(x, Value) else x

        def unwrap(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(map(unwrap, x))
            return x.payload if isinstance(x, Tensor) else x
        with using(ground=self.tracer, middle=None, amp=None, grad=False):
            return unwrap(function(*map(wrap, args), **kwargs))

    def refuse(self) -> NotOurs:
        """What a form raises for an operation that it has no meaning for."""
        return NotOurs()


def row_stays(op: Operation) -> bool:
    """Whether an operation is a call of a row that Paddle has nothing for."""
    dialect, _, short = op.name().partition(".")
    row = ROWS.get(short)
    if row is not None and (short in REASONS or short in SOME_CALLS):
        return op.name() == our_name(short)
    return row is not None and row.dialect == dialect != "pd_op"


class LoadTrace(Trace):
    """Calls of rows get the struct name, the source lines, ... of the operation that they stand for."""

    common: dict[str, Attribute]

    def __init__(self, program: Program):
        super().__init__(program)
        self.common = {}

    def run(self, row: Row, payloads: Sequence[Any], attrs: dict[str, Any]) -> Any:
        values = [self.value(p, payloads, row) for p in payloads]
        extra = {k: a for k, a in self.common.items() if k not in ("stop_gradient", "persistable", "place")}
        results = self.build.call(row, values, attrs, extra)
        return results if row.multi else results[0]


def same(at: Loader, op: Operation) -> Any:
    """The row of the same name."""
    row = ROWS[op.name().partition(".")[2]]
    found = signature(row.name)
    assert found is not None
    attrs = at.attrs(op)
    for name, value in attrs.items():
        if name not in row.attrs:
            default = found.attrs[name][1] if name in found.attrs else found.mutable[name].default
            if default is not REQUIRED and value != default.value and found.attrs.get(name, ("",))[0] != "place":
                raise at.refuse()
    tensors: list[Value] = []
    for x in at.inputs(op):
        if x is None:
            continue
        tensors += x if isinstance(x, list) else [x]
    if len(at.inputs(op)) > len(row.inputs) and any(x is not None for x in at.inputs(op)[len(row.inputs):]):
        raise at.refuse()
    results = at.row(row.name, *tensors, **{k: v for k, v in attrs.items() if k in row.attrs})
    if vector_result(row):
        at.vectors[op.result(0)] = list(results)
        return [None]
    return results
