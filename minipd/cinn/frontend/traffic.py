"""How many bytes a program moves: what fusion is for, counted.

An operator reads its operands and writes its results, all of them in full; a group, or its kernel, reads and writes
only what crosses its border.  Views move nothing, and who reads a repeated tensor reads what it repeats.  Caches are
not modelled: the count is an upper bound that does not depend on the machine.  Where sizes are symbolic, each symbol
counts as 128, which is enough to compare two ways of computing the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from minipd.cinn.dialect import FUSION, JIT_KERNEL
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only, result_values, tensor_operands
from minipd.ir.sizes import nbytes
from minipd.ir.traits import IrTrait
from minipd.ir.value import Value

__all__ = ["bytes_moved", "bytes_of_op", "sizes"]


def bytes_moved(program: Program) -> int:
    """Bytes read and written by one run.  Both branches of an `if` count."""
    total, pending = 0, list(program.global_block())
    while pending:
        op = pending.pop()
        total += bytes_of_op(op)
        if op.name() != FUSION:
            pending += [inner for block in op.blocks() for inner in block]
    return total


def bytes_of_op(op: Operation) -> int:
    """Bytes that one operation reads and writes, without what is in its regions."""
    if op.name() in (FUSION, JIT_KERNEL):
        return sizes(op.operands_source()) + sizes(op.results())
    row = op.row
    if row is None or row.view or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
        return 0
    read = (v for i, v in enumerate(tensor_operands(op)) if i not in row.shape_only)
    return sizes(map(repeated, read)) + sizes(result_values(op))


def sizes(values: Iterable[Value]) -> int:
    """The bytes of tensors, each once."""
    return sum(map(nbytes, dict.fromkeys(values)))


def repeated(value: Value) -> Value:
    """What `value` repeats, itself if nothing."""
    op = value.get_defining_op()
    while op is not None and op.name() in ("pd_op.expand", "pd_op.expand_as"):
        value = op.operand_source(0)
        op = value.get_defining_op()
    return value
