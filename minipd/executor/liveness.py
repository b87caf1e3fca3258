"""When a value may be let go of.

A value is held from the operation that makes it to the last one that reads it; what a region reads from around it
counts as read by the operation that owns the region.  A read of the shape alone (a shape-only operand) does not need
the values: after the last read of those, a stand-in of one element is enough.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.ir.block import Block
from minipd.ir.operation import Operation, captured
from minipd.ir.schema import tensor_operands
from minipd.ir.value import Value

__all__: list[str] = []


class Reads(NamedTuple):
    """What an operation reads: values, and values of which it reads only the shape."""

    values: list[Value]
    shapes: list[Value]


class Ends(NamedTuple):
    """For each operation of a block: the values that end there, and those of which only the shape is read later."""

    dead: dict[Operation, list[Value]]
    shape_only: dict[Operation, list[Value]]


def reads_of(op: Operation) -> Reads:
    """Bundles (`builtin.combine`) are looked through, constants that are attributes are not read at all."""
    row = op.row
    if row is None:
        return Reads(unbundled(op.operands_source() + (captured(op) if op.regions else [])), [])
    tensors = tensor_operands(op)
    shapes = [v for i, v in enumerate(tensors) if i in row.shape_only]
    return Reads([v for i, v in enumerate(tensors) if i not in row.shape_only], shapes)


def unbundled(values: list[Value]) -> list[Value]:
    """The values, those that `builtin.combine` made replaced by what it combined."""
    found: list[Value] = []
    for v in values:
        op = v.get_defining_op()
        found += op.operands_source() if op is not None and op.name() == "builtin.combine" else [v]
    return found


def ends(block: Block) -> Ends:
    """Where the values that `block` defines end."""
    last_value: dict[Value, Operation] = {}
    last_any: dict[Value, Operation] = {}
    for op in block:
        for result in op.results():
            last_value[result] = last_any[result] = op
        if op.name() == "builtin.combine":          # read by whoever reads the bundle
            continue
        reads = reads_of(op)
        for value in reads.values:
            if value in last_any:
                last_value[value] = last_any[value] = op
        for value in reads.shapes:
            if value in last_any:
                last_any[value] = op
    dead: dict[Operation, list[Value]] = {}
    shape_only: dict[Operation, list[Value]] = {}
    for value, op in last_any.items():
        dead.setdefault(op, []).append(value)
        if last_value[value] is not op:
            shape_only.setdefault(last_value[value], []).append(value)
    return Ends(dead, shape_only)
