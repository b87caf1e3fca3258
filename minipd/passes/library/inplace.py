"""Operations that write over an operand are marked: its memory is free, for nobody reads it afterwards.

    >>> from minipd.passes import create_pass
    >>> from minipd.passes.show import program_of
    >>> program = program_of(lambda x: x.exp().tanh() + x, (2, 3))
    >>> create_pass("inplace_pass").run(program)
    1
    >>> [op.name() for op in program.global_block() if "is_inplace" in op.attributes]
    ['pd_op.tanh']

An operand may be written over if its kernel allows that (`executor.overwriting`), if the operand is of the result's
type and was computed by the program in memory of its own, and if neither it nor a view of it is read afterwards, or
leaves the program.

The executor does all this by itself, once it knows sizes and strides, marked or not; the pass writes down what can be
said of the program alone, for whoever reads it, and for Paddle, whose pass of this name renames such operations
(`pd_op.tanh_`) in the program that is run.  It comes last: a pass behind it may make a mark untrue.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipd.executor.overwriting import overwritable
from minipd.framework.dim import prod
from minipd.framework.row import Row, ufunc_of
from minipd.ir.block import Block
from minipd.ir.operation import Operation, walk_inside
from minipd.ir.schema import result_values, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value
from minipd.passes.table import function_pass

__all__: list[str] = []

MARK = "is_inplace"


@function_pass("inplace_pass", visits="block", opt_level=1, exact=True)
def mark_inplace(block: Block) -> int:
    """Operations that write over an operand are marked.  The number of changes is that of new marks."""
    ops = list(block)
    at = {inner: i for i, op in enumerate(ops) for inner in walk_inside(op)}
    base, last = _lifetimes(ops, at)
    changes = 0
    for i, op in enumerate(ops):
        taken = op.row is not None and not op.row.view and _takes_place(op, op.row, i, base, last)
        if taken != (MARK in op.attributes):
            changes += 1
            if taken:
                op.set_attr(MARK, True)
            else:
                del op.attributes[MARK]
    return changes


def _lifetimes(ops: Iterable[Operation], at: dict[Operation, int]) -> tuple[dict[Value, Value], dict[Value, int]]:
    """Value -> the value in whose memory it lies, for those that the block computes in memory of their own; and the
    place of the operation that reads this memory last."""
    base: dict[Value, Value] = {}
    last: dict[Value, int] = {}
    for i, op in enumerate(ops):
        row = op.row
        if row is None or IrTrait.CONSTANT in op.info.traits:
            continue
        try:
            operands = tensor_operands(op)
        except ValueError:
            continue
        for value in result_values(op):
            if row.view and operands[0] not in base:
                continue                            # a view of what is not the block's own
            owner = base[value] = base[operands[0]] if row.view else value
            last[owner] = max([last.get(owner, i), *(at[user] for user in value.all_used_ops() if user in at)])
    return base, last


def _takes_place(op: Operation, row: Row, i: int, base: dict[Value, Value], last: dict[Value, int]) -> bool:
    operands, results = tensor_operands(op), result_values(op)
    for result, candidates in overwritable(row).items():
        for n in candidates:
            if result < len(results) and n < len(operands) and n not in row.shape_only and _dies(
                    operands, n, results[result], ufunc_of(row) is not None, base):
                owner = base[operands[n]]
                if last[owner] == i and not _leaves(results[result]):
                    return True
    return False


def _dies(operands: list[Value], n: int, new: Value, elementwise: bool, base: dict[Value, Value]) -> bool:
    """Whether the memory of operand n is as large as that of the result, more than one element, and no other operand
    lies in it.  (Element by element, an operand may be given twice.)"""
    old, owner = operands[n], base.get(operands[n])
    if owner is None or old.type() != new.type() or prod(owner.shape) != prod(new.shape) or prod(new.shape) == 1:
        return False
    return not any(base.get(v) is owner and not (elementwise and v is old) for j, v in enumerate(operands) if j != n)


def _leaves(value: Value) -> bool:
    """Whether a value, or a view of it, is an output: those have memory of their own."""
    return any(user.row is None or user.row.view and any(map(_leaves, user.results())) for user in value.all_used_ops())
