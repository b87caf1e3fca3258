"""Copying: which new value stands for which old one."""

from __future__ import annotations

from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["IrMapping"]


class IrMapping:
    """Old value -> new value.  A value that is not mapped stands for itself (it lies outside of what is copied)."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}

    def add(self, old: Value, new: Value) -> None:
        self._values[old] = new

    def look_up(self, value: Value) -> Value:        # (None, an operand that is left out, stands for itself too)
        return self._values.get(value, value)

    def has(self, value: Value) -> bool:
        return value in self._values


def clone_operation(op: Operation, mapping: IrMapping) -> Operation:
    """A copy of `op` in no block; regions are copied with it.

    The walk keeps its own stack of (block to copy, block to fill), so depth of nesting costs no Python frames.
    """
    copy, pending = _shallow(op, mapping)
    while pending:
        source, target = pending.pop()
        for arg in source.args():
            new = target.add_arg(arg.type())
            new.attributes.update(arg.attributes)
            mapping.add(arg, new)
        for inner in source:
            new_op, more = _shallow(inner, mapping)
            target.append(new_op)
            pending.extend(more)
    return copy


def _shallow(op: Operation, mapping: IrMapping) -> tuple[Operation, list[tuple[Block, Block]]]:
    """The copy with empty blocks, and the pairs of blocks that are still to be filled."""
    copy = Operation(op.name(), [mapping.look_up(v) for v in op.operands_source()], dict(op.attributes),
                     [r.type() for r in op.results()], op.num_regions(), op.made_at)
    for old, new in zip(op.results(), copy.results(), strict=True):
        mapping.add(old, new)
    pairs = [(block, new_region.add_block()) for region, new_region in zip(op.regions, copy.regions, strict=True)
             for block in region.blocks]
    return copy, pairs


def clone_block(source: Block, target: Block, mapping: IrMapping) -> None:
    """Append copies of all operations of `source` to `target`."""
    for op in source:
        target.append(clone_operation(op, mapping))
