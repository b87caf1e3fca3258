"""How a call of a row is laid out as an operation, and how to read it back.

Paddle lets some attributes be tensors (an axis list, a target shape, a scale).  In a program these are operands,
produced by `pd_op.full_int_array` or `pd_op.full`; and a row with any number of operands takes one vector, made by
`builtin.combine`.  So the operands of `pd_op.concat` are (vector, axis), and everybody who wants to know *the tensors*
or *the axis* looks through: `tensor_operands`, `op_attrs`, `constant_of`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from minipd.framework.row import Row, Trait
from minipd.ir.operation import Operation, user_error
from minipd.ir.traits import IrTrait
from minipd.ir.types import Type, VectorType, type_of
from minipd.ir.value import Value, describe

__all__ = ["constant_of", "op_attrs", "tensor_operands"]


def vector_result(row: Row) -> bool:
    """Whether the row's results are one vector in a program: a row with several results that have no names of their own
    (`split`), whose number depends on the call.  Rows with named results (`softmax`, `loss`) have one result each."""
    return row.multi and len(row.outputs) == 1


def constant_of(value: Value) -> Any:
    """The Python value (a number, a tuple of ints) that `value` always has; None if that is not known.

    >>> from minipd.ir.program import Program
    >>> from minipd.ir.builder import Builder
    >>> axis = Builder(Program().global_block()).constant((0, 1))
    >>> axis.get_defining_op(), constant_of(axis)
    (pd_op.full_int_array() -> tensor<2xi64>, (0, 1))
    """
    op = value.get_defining_op()
    if op is None or IrTrait.CONSTANT not in op.info.traits:
        return None
    return op.attributes["value"].value


def number_of_tensors(op: Operation, row: Row) -> int:
    """How many of the operands are tensors (a vector counts as one); the rest are mutable attributes."""
    return op.num_operands() - len(row.mutable)


def tensor_operands(op: Operation) -> list[Value]:
    """The tensors that an operation of a row reads, vectors taken apart: the positional arguments of its kernel.

    Raises: ValueError if a vector does not come from `builtin.combine`.
    """
    row = op.row
    assert row is not None, f"{op.name()} has no row"
    values = op.operands_source()[:number_of_tensors(op, row)]
    if row.variadic:
        vector = values.pop()
        combine = vector.get_defining_op()
        if combine is None or combine.name() != "builtin.combine":
            raise ValueError(user_error(op, "expected its last tensor operand to be a vector made by builtin.combine, "
                                            f"got {describe(vector)}"))
        values += combine.operands_source()
    return values


def inferred_types(row: Row, values: Sequence[Any], attrs: dict[str, Any]) -> list[Type]:
    """The types of the results of a call, as an operation has them, by the row's shape rule."""
    metas = row.infer_meta(*values, **attrs)
    types: list[Type] = [type_of(m) for m in (metas if row.multi else (metas,))]
    return [VectorType(types)] if vector_result(row) else types


def mutable_operands(op: Operation) -> dict[str, Value]:
    """The operands that stand for attributes, by the attribute's name."""
    row = op.row
    assert row is not None, f"{op.name()} has no row"
    return dict(zip(row.mutable, op.operands_source()[number_of_tensors(op, row):], strict=True))


def op_attrs(op: Operation) -> dict[str, Any]:
    """All attributes of the row, as the kernel wants them: those of the schema, and those that are constant operands.

    Raises: ValueError if such an operand is not a constant (its value is only known when the program runs).
    """
    attrs = static_attrs(op)
    for name, value in mutable_operands(op).items():
        attrs[name] = constant_of(value)
        if attrs[name] is None:
            raise ValueError(user_error(op, f"attribute {name!r}: expected a constant, got {describe(value)}, which is "
                                            "known only when the program runs"))
    return attrs


def static_attrs(op: Operation) -> dict[str, Any]:
    """The attributes of the row that the operation stores, or else its schema's defaults."""
    row = op.row
    assert row is not None, f"{op.name()} has no row"
    stored = op.attributes
    return {name: stored[name].value if name in stored else default for name, default in row.attrs.items()
            if name not in row.mutable and (name in stored or default is not inspect.Parameter.empty)}


def result_values(op: Operation) -> list[Value]:
    """The tensors that an operation of a row makes; for a vector, the results of the `builtin.split` that takes it
    apart (none if nothing does)."""
    row = op.row
    if row is None or not vector_result(row):
        return list(op.results())
    for user in op.result(0).all_used_ops():
        if user.name() == "builtin.split":
            return list(user.results())
    return []


def is_attribute_only(op: Operation) -> bool:
    """Whether a constant stands only where calls of rows have attributes: nobody reads it as a tensor."""
    for use in op.result(0).uses:
        row = use.owner().row
        if row is None or use.index() < number_of_tensors(use.owner(), row):
            return False
    return True


def is_pure(op: Operation) -> bool:
    """Whether an operation may be removed when nothing uses its results."""
    traits = op.info.traits
    return Trait.SIDE_EFFECT not in traits and IrTrait.TERMINATOR not in traits
