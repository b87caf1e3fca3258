"""Building programs by hand: an insertion point, and how constants and calls of rows are spelled.

`Builder.call` lays a call of a row out as Paddle does (see `schema`): mutable attributes become `pd_op.full_int_array`
or `pd_op.full`, any number of tensors becomes one vector, results come back as values.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.row import Row
from minipd.ir.attributes import Attribute, PlaceAttribute
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.schema import vector_result
from minipd.ir.types import DenseTensorType, Type, VectorType, type_of
from minipd.ir.value import OpResult, Value

__all__ = ["Builder", "InsertionPoint"]

CPU = PlaceAttribute("cpu")
ANYWHERE = PlaceAttribute("undefined:0")
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


class InsertionPoint(NamedTuple):
    """A place in a block: before an operation, or at the end."""

    container: Block
    before: Operation | None = None

    def block(self) -> Block:
        return self.container

    def get_operation(self) -> Operation:
        """The operation before which it is.

        Raises: ValueError at the end of a block, where there is none.
        """
        if self.before is None:
            raise ValueError("InsertionPoint.get_operation: expected a place before an operation, got the end of a "
                             "block")
        return self.before

    def prev(self) -> InsertionPoint:
        """One operation earlier; at the start of the block, where it is."""
        before = self.container.back() if self.before is None else self.before.prev
        return self if before is None else InsertionPoint(self.container, before)

    def next(self) -> InsertionPoint:
        """One operation later; at the end of the block, where it is."""
        return self if self.before is None else InsertionPoint(self.container, self.before.next)


class Builder:
    """Inserts operations at a place in a block.

    >>> from minipd.framework.row import ROWS
    >>> from minipd.ir.program import Program
    >>> program = Program()
    >>> build = Builder(program.global_block())
    >>> x = build.data("x", (2, 3), "float32")
    >>> build.call(ROWS["sum"], (x,), {"axis": (1,), "keepdim": False})
    (result 0 of pd_op.sum: tensor<2xf32>,)
    """

    def __init__(self, block: Block, before: Operation | None = None):
        self.block, self.before = block, before
        self.made_at: tuple[str, int] | None = None     # the line that operations are said to be made at
        self.facts: dict[str, Any] = {}                 # attributes that every operation gets: `op_role`, ...

    # ------------------------------------------------------------------------------------------------- places
    @property
    def insertion_point(self) -> InsertionPoint:
        """Where the next operation goes."""
        return InsertionPoint(self.block, self.before)

    def set_insertion_point(self, place: Operation | InsertionPoint) -> None:
        """Insert before this operation, or at this place, from now on.

        Raises: ValueError for an operation that is in no block any more.
        """
        if isinstance(place, InsertionPoint):
            if place.before is None:
                self.block, self.before = place.container, None
                return
            place = place.before
        self.block, self.before = _block_of(place), place

    def set_insertion_point_after(self, op: Operation) -> None:
        """Insert after `op` from now on."""
        self.block, self.before = _block_of(op), op.next

    def set_insertion_point_to_block_end(self, block: Block) -> None:
        """Insert at the end of `block` from now on."""
        self.block, self.before = block, None

    def set_insertion_point_to_start(self, block: Block) -> None:
        """Insert before everything that is in `block` now."""
        self.block, self.before = block, block.front()

    @contextmanager
    def insertion_guard(self) -> Iterator[Builder]:
        """Whatever the insertion point becomes inside, it is what it was afterwards.

        >>> from minipd.ir.program import Program
        >>> program = Program()
        >>> build = Builder(program.global_block())
        >>> x = build.data("x", (2,), "float32")
        >>> with build.insertion_guard():
        ...     build.set_insertion_point_to_start(build.block)
        ...     first = build.data("first", (2,), "float32")
        >>> last = build.data("last", (2,), "float32")
        >>> [op.attributes["name"].value for op in program.global_block()]
        ['first', 'x', 'last']

        Raises: ValueError if the operation before which it was is gone.
        """
        place = self.insertion_point
        try:
            yield self
        finally:
            self.set_insertion_point(place)

    def insert(self, op: Operation) -> Operation:
        return self.block.insert_before(self.before, op)

    # --------------------------------------------------------------------------------------------- operations
    def build(self, name: str, operands: Sequence[Value] = (), attributes: dict[str, Any] | None = None,
              result_types: Sequence[Type] = (), num_regions: int = 0) -> Operation:
        """Insert an operation as it is given, with the facts that this builder notes."""
        if self.facts:
            attributes = {**self.facts, **(attributes or {})}
        return self.insert(Operation(name, operands, attributes, result_types, num_regions, self.made_at))

    def data(self, name: str, shape: Sequence, dtype: Any, stop_gradient: bool = True) -> OpResult:
        """An input of the program."""
        type = DenseTensorType(tuple(shape), dtypes.to_np(dtype))
        return self.build("pd_op.data", (), {"name": name, "shape": type.shape, "dtype": type.dtype, "place": ANYWHERE,
                                             "stop_gradient": [stop_gradient]}, [type]).result(0)

    def parameter(self, name: str, shape: Sequence, dtype: Any, trainable: bool = True) -> OpResult:
        """A read of program state."""
        attributes = {"parameter_name": name, "is_distributed": [False], "is_parameter": [True], "need_clip": [True],
                      "persistable": [True], "stop_gradient": [not trainable], "trainable": [trainable]}
        type = DenseTensorType(tuple(shape), dtypes.to_np(dtype))
        return self.build("builtin.parameter", (), attributes, [type]).result(0)

    def set_parameter(self, name: str, value: Value) -> Operation:
        """A write of program state."""
        return self.build("builtin.set_parameter", [value], {"parameter_name": name})

    def output(self, name: str, value: Value) -> Operation:
        """A result of the program."""
        return self.build("builtin.shadow_output", [value], {"output_name": name})

    def constant(self, value: Any, dtype: Any = None) -> OpResult:
        """What a mutable attribute becomes: a tuple of ints a `full_int_array`, a number a `full` of shape [1].

        A float is stored in full; `dtype` (default: float32, int32 for an int, as Paddle has it) is only its type.
        """
        if isinstance(value, (tuple, list)):
            attributes = {"value": tuple(value), "dtype": INT64, "place": CPU, "stop_gradient": [True]}
            return self.build("pd_op.full_int_array", (), attributes, [DenseTensorType((len(value),), INT64)]).result(0)
        if dtype is None:
            dtype = INT32 if isinstance(value, (int, np.integer)) else dtypes.float32.np
        return self.full((1,), value, dtype, CPU)

    def full(self, shape: Sequence, value: Any, dtype: Any, place: Attribute = ANYWHERE) -> OpResult:
        """A tensor that holds `value` everywhere."""
        type = DenseTensorType(tuple(shape), dtypes.to_np(dtype))
        attributes = {"shape": type.shape, "value": value, "dtype": type.dtype, "place": place, "stop_gradient": [True]}
        return self.build("pd_op.full", (), attributes, [type]).result(0)

    def combine(self, values: Sequence[Value]) -> OpResult:
        """Several values as one vector."""
        attributes = {"stop_gradient": [all(v.stop_gradient for v in values)]}
        type = VectorType(tuple(v.type() for v in values))
        return self.build("builtin.combine", values, attributes, [type]).result(0)

    def call(self, row: Row, values: Sequence[Value], attrs: dict[str, Any], extra: dict[str, Any] | None = None,
             ) -> tuple[OpResult, ...]:
        """Insert a call of `row`, shapes inferred, and return its results.

        values: the tensor operands.  attrs: Python values by name, the schema's defaults for those that are missing.
        extra: further attributes of the operation, such as `op_callstack`.
        """
        attrs = {name: attrs.get(name, default) for name, default in row.attrs.items()}
        missing = [name for name, value in attrs.items() if value is inspect.Parameter.empty]
        if missing:
            raise TypeError(f"{row.name}: expected attribute {missing[0]!r}, got none")
        metas = row.infer_meta(*values, **attrs)
        types: list[Type] = [type_of(m) for m in (metas if row.multi else (metas,))]
        return self.layout(row, values, attrs, types, extra)

    def layout(self, row: Row, values: Sequence[Value], attrs: dict[str, Any], types: list[Type],
               extra: dict[str, Any] | None = None) -> tuple[OpResult, ...]:
        """`call` with the result types given."""
        self.made_at = _line(extra)         # constants and bundles belong to the call
        try:
            return self._layout(row, values, attrs, types, extra or {})
        finally:
            self.made_at = None

    def _layout(self, row: Row, values: Sequence[Value], attrs: dict[str, Any], types: list[Type],
                extra: dict[str, Any]) -> tuple[OpResult, ...]:
        stop = not row.has_vjp or all(v.stop_gradient for v in values)
        operands = list(values)
        if row.variadic:
            fixed = len(row.inputs) - 1
            operands[fixed:] = [self.combine(operands[fixed:])]
        operands += [self.constant(attrs[name], _constant_dtype(attrs[name], values)) for name in row.mutable]
        vector = vector_result(row)
        stored = {k: v for k, v in attrs.items() if k not in row.mutable}
        if types:
            stored["stop_gradient"] = [stop] * (1 if vector else len(types))
        op = self.build(f"{row.dialect}.{row.name}", operands, {**stored, **extra},
                        [VectorType(tuple(types))] if vector else types)
        if vector:
            op = self.build("builtin.split", [op.result(0)], {"stop_gradient": [stop] * len(types)}, types)
        return tuple(op.results())


def _block_of(op: Operation) -> Block:
    if op.parent is None:
        raise ValueError(f"insertion point: expected an operation in a block, got {op.name()}, which is in none")
    return op.parent


def _line(extra: dict[str, Any] | None) -> tuple[str, int] | None:
    """File and line from an attribute `op_callstack`, None if there is none."""
    stack = extra.get("op_callstack") if extra else None
    if not isinstance(stack, tuple) or not stack:
        return None
    file, _, number = stack[0].rpartition(":")
    return file, int(number)


def _constant_dtype(value: Any, values: Sequence[Value]) -> np.dtype | None:
    """float64 for a float beside float64 tensors: reading the constant as a tensor loses nothing then."""
    wide = isinstance(value, float) and any(v.dtype == np.float64 for v in values)
    return dtypes.float64.np if wide else None
