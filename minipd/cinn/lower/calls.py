"""The operators of a group, as lowering and grouping read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from minipd.cinn.compute.table import Compute, Indexed, Piece, compute_of
from minipd.cinn.lower.errors import CannotLower
from minipd.framework.dtype import COMPLEX
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["NO_CALLS", "Call", "calls_of"]

#: operations of a group that compute nothing
NO_CALLS = ("pd_op.full_int_array", "pd_op.shape_only", "builtin.combine", "builtin.split", "cf.yield")


@dataclass
class Call:
    """One operator of a group."""

    op: Operation
    compute: Compute
    operands: list[Value]
    results: list[Value]
    attrs: dict[str, Any]
    #: its place in the group, for names
    number: int

    @property
    def name(self) -> str:
        assert self.op.row is not None
        return self.op.row.name

    @property
    def read(self) -> list[Value]:
        """The operands whose elements are read."""
        assert self.op.row is not None
        shapes = self.op.row.shape_only
        return [v for i, v in enumerate(self.operands) if i not in shapes] if shapes else self.operands

    def pieces(self, result: int) -> list[Piece]:
        """What an Indexed row puts its result together from.   Raises: CannotLower."""
        assert isinstance(self.compute, Indexed)
        try:
            return self.compute.pieces(self.attrs, [v.shape for v in self.operands], [v.shape for v in self.results],
                                       result)
        except TypeError as error:
            raise CannotLower(f"{self.name}: {error}") from None


def calls_of(ops: Iterable[Operation]) -> list[Call]:
    """The operators among `ops` as calls of rows; constants that only stand for attributes are no calls.

    Raises: CannotLower for one without a `compute` entry, and for complex numbers, which the loop IR does not have.
    """
    calls: list[Call] = []
    for op in ops:
        if op.name() in NO_CALLS:
            continue
        compute = None if op.row is None else compute_of(op.row)
        if compute is None:
            raise CannotLower(f"{op.name()} has no column `compute`")
        for value in (*tensor_operands(op), *result_values(op)):
            if value.dtype in COMPLEX:
                raise CannotLower(f"{op.name()} of {value.type()}: the loop IR has no complex numbers")
        calls.append(Call(op, compute, tensor_operands(op), result_values(op), op_attrs(op), len(calls)))
    return calls
