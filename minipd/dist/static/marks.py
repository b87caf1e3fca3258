"""Marks: what `shard_tensor` left in a program becomes the types of inputs and parameters.

    (%1) = "dist_op.shard_tensor" (%0) {mesh: ..., placements: ...}      %0 an input or a parameter: it gets the type
                                                                         %0 computed: it is resharded there
Afterwards every mark is gone.  (Paddle's `apply_mix2dist_pass` refuses the second kind unless it is replicated.)
"""

from __future__ import annotations

from minipd.dist.dialect import DistTensorType
from minipd.dist.placements import check_placements
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs
from minipd.ir.value import Value

__all__: list[str] = []

#: what the caller of a program places
SOURCES = ("pd_op.data", "builtin.parameter")


def mix2dist(program: Program) -> int:
    """Turn marks into types, in place; returns how many there were.

    Raises: ValueError for placements that do not fit the value, with the user's line.
    """
    marks = [op for op in program.walk() if op.name() == "dist_op.shard_tensor"]
    for op in marks:
        _settle(op)
    return len(marks)


def _settle(op: Operation) -> None:
    attrs, value, result = op_attrs(op), op.operand_source(0), op.result(0)
    placements = check_placements(attrs["placements"], attrs["mesh"], len(value.shape), user_error(op, "its marks"))
    kind = DistTensorType(value.shape, value.dtype, attrs["mesh"], placements)
    if is_source(value) and not isinstance(value.type(), DistTensorType):
        value.set_type(kind)
        value.stop_gradient = value.stop_gradient and result.stop_gradient
    elif value.type() != kind:
        assert op.parent is not None
        stop = result.stop_gradient
        value, = Builder(op.parent, op).call(ROWS["reshard"], [value], {"mesh": kind.mesh, "placements": placements},
                                             {"marked": True})
        value.stop_gradient = stop
    result.replace_all_uses_with(value)
    op.erase()


def is_source(value: Value) -> bool:
    """Whether a value is an input or a parameter."""
    op = value.get_defining_op()
    return op is not None and op.name() in SOURCES
