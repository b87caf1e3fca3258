"""Control flow by its own words: what is the condition of an `if`, what is the body of a `while`."""

from __future__ import annotations

from minipd.ir.block import Block
from minipd.ir.operation import Operation, user_error
from minipd.ir.value import OpResult, Value

__all__ = ["IfOp", "WhileOp"]


class _View:
    """An operation of one name, seen as what it is."""

    name: str

    def __init__(self, op: Operation):
        if op.name() != self.name:
            raise TypeError(user_error(op, f"expected {self.name}, got {op.name()}"))
        self.op = op

    def as_operation(self) -> Operation:
        return self.op

    def cond(self) -> Value:
        """The condition."""
        return self.op.operand_source(0)

    def results(self) -> list[OpResult]:
        return self.op.results()


class IfOp(_View):
    """`pd_op.if`."""

    name = "pd_op.if"

    def true_block(self) -> Block:
        return self.op.regions[0].front()

    def false_block(self) -> Block:
        return self.op.regions[1].front()


class WhileOp(_View):
    """`pd_op.while`."""

    name = "pd_op.while"

    def body(self) -> Block:
        return self.op.regions[0].front()

    def block_arguments(self) -> list[Value]:
        """What is carried, as the body sees it."""
        return list(self.body().args())
