"""Which operators the compiler wants in parts: as a whole they cannot be in a group, but their parts can."""

from __future__ import annotations

from typing import Any

from minipd.cinn.compute.table import compute_of
from minipd.cinn.frontend.space import SHORT
from minipd.decomposition import DecomposePass
from minipd.framework.dim import same
from minipd.framework.row import Row
from minipd.ir.dce import remove_dead_ops
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, tensor_operands

__all__ = ["prepare"]

#: rows that take a shape from another tensor, which would have to live for it, whatever `compute` says of them
SHAPES = ("expand_as", "full_like", "reduce_as")
#: rows of which a kernel rather has the parts, which it reads where they are
PARTED = ("split",)
#: rows whose parts would not fuse: they move rows of a tensor, or would be one more array, of numbers that are drawn
WHOLE = ("embedding", "dropout")
#: rows that need all of `axis` before they know any of their result, which loops have along rows only; a softmax may
#: also go over short columns
ALONG_AXIS = {"softmax": 0, "cross_entropy_with_softmax": 0, "cross_entropy_with_softmax_grad": 1}
#: rows whose parts compare a number with every position of an axis -> the operand with the numbers
LOOK_UPS = {"take_along_axis": 1, "take_along_axis_grad": 1}


def prepare(program: Program) -> int:
    """Decompose what has no `compute` entry; returns how many operations have been replaced."""
    replaced = DecomposePass(wants_rule).run(program)
    remove_dead_ops(program)
    return replaced


def wants_rule(op: Operation) -> bool:
    """Whether the compiler wants an operation in parts."""
    row = op.row
    assert row is not None
    if row.name in SHAPES or row.name in PARTED:
        return True
    if compute_of(row) is not None or row.name in WHOLE:
        return False
    if row.name in LOOK_UPS:
        return _looks_up_one_per_row(op, row) and (row.name == "take_along_axis_grad" or _is_read_anyhow(op))
    return row.name not in ALONG_AXIS or _is_last_axis(op, ALONG_AXIS[row.name]) or (
        row.name == "softmax" and _is_short(op.operand_source(0).shape[op_attrs(op)["axis"]]))


def _is_last_axis(op: Operation, operand: int) -> bool:
    """Whether the operation's axis is the last of an operand, but for dimensions of size 1."""
    return all(same(d, 1) for d in op.operand_source(operand).shape[op_attrs(op)["axis"] + 1:])


def _is_short(size: Any) -> bool:
    return isinstance(size, int) and size <= SHORT


def _looks_up_one_per_row(op: Operation, row: Row) -> bool:
    numbers = LOOK_UPS[row.name]
    return _is_last_axis(op, numbers) and same(op.operand_source(numbers).shape[op_attrs(op)["axis"]], 1)


def _is_read_anyhow(op: Operation) -> bool:
    """Whether a kernel goes over the whole axis of what a look-up reads: it makes it, or reads it, element by element.
    Then comparing with every position costs next to nothing, and what it makes need not be written."""
    table = tensor_operands(op)[0]
    origin = table.get_defining_op()
    around = [user for user in table.all_used_ops() if user is not op] + ([] if origin is None else [origin])
    return any(other.row is not None and (compute_of(other.row) is not None or wants_rule(other)) for other in around
               if other.row is None or other.row.name not in LOOK_UPS)
