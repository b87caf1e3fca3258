"""What passes by hand ask again and again."""

from __future__ import annotations

from minipd.framework import dtype as dtypes
from minipd.ir.operation import Operation
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["gradients_agree", "only_maker", "orders"]


def only_maker(value: Value, row: str, *users: Operation) -> Operation | None:
    """The call of `row` that makes `value`, if it stands in the block of its users and nobody else reads it."""
    op = value.get_defining_op()
    if op is None or op.row is None or op.row.name != row or op.parent is not users[0].parent:
        return None
    return op if all(user in users for r in result_values(op) for user in r.all_used_ops()) else None


def orders(op: Operation) -> tuple[tuple[Value, Value], ...]:
    """The two operands of an operation that commutes, in both orders."""
    x, y = tensor_operands(op)
    return ((x, y), (y, x)) if x is not y else ((x, y),)


def gradients_agree(root: Operation, *others: Operation) -> bool:
    """Whether a gradient flows through all of these operations or through none: to fuse what `no_grad` has cut would
    join it again."""
    if all(r.stop_gradient for r in root.results()):
        return True
    return not any(r.stop_gradient and r.dtype in dtypes.INEXACT for op in (root, *others)
                   if any(not v.stop_gradient for v in tensor_operands(op)) for r in result_values(op))
