"""Copying: which new value stands for which old one."""

from __future__ import annotations

from typing import NamedTuple

from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.value import Value

__all__ = ["CloneOptions", "IrMapping"]


class CloneOptions(NamedTuple):
    """What a copy of an operation gets, in Paddle's order.  (Blocks have no successors here, so the third changes
    nothing.)  A copy without operands has none; one without regions has none."""

    clone_regions: bool = True
    clone_operands: bool = True
    clone_successors: bool = True

    @staticmethod
    def all() -> CloneOptions:
        """Everything, which is also the default."""
        return CloneOptions()

    def is_clone_regions(self) -> bool:
        return self.clone_regions

    def is_clone_operands(self) -> bool:
        return self.clone_operands

    def is_clone_successors(self) -> bool:
        return self.clone_successors


ALL = CloneOptions()


class IrMapping:
    """Old value -> new value.  A value that is not mapped stands for itself: it lies outside of what is copied.  (In
    Paddle, looking up such a value is an error.)"""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}

    def size(self) -> int:
        """How many values are mapped."""
        return len(self._values)

    def add(self, old: Value, new: Value) -> None:
        self._values[old] = new

    def look_up(self, value: Value) -> Value:        # (None, an operand that is left out, stands for itself too)
        return self._values.get(value, value)

    def has(self, value: Value) -> bool:
        return value in self._values


def clone_operation(op: Operation, mapping: IrMapping, options: CloneOptions = ALL) -> Operation:
    """A copy of `op` in no block, with what `options` says; `mapping` learns the results.

    The walk keeps its own stack of (block to copy, block to fill), so depth of nesting costs no Python frames.
    """
    copy, pending = _shallow(op, mapping, options)
    while pending:
        source, target = pending.pop()
        for arg in source.args():
            new = target.add_arg(arg.type())
            new.attributes.update(arg.attributes)
            mapping.add(arg, new)
        for inner in source:
            new_op, more = _shallow(inner, mapping, ALL)
            target.append(new_op)
            pending.extend(more)
    return copy


def _shallow(op: Operation, mapping: IrMapping, options: CloneOptions,
             ) -> tuple[Operation, list[tuple[Block, Block]]]:
    """The copy with empty blocks, and the pairs of blocks that are still to be filled."""
    operands = [mapping.look_up(v) for v in op.operands_source()] if options.clone_operands else []
    copy = Operation(op.name(), operands, dict(op.attributes), [r.type() for r in op.results()],
                     op.num_regions() if options.clone_regions else 0, op.made_at)
    for old, new in zip(op.results(), copy.results(), strict=True):
        mapping.add(old, new)
    pairs = [(block, new_region.add_block()) for region, new_region in zip(op.regions, copy.regions, strict=False)
             for block in region.blocks]
    return copy, pairs


def clone_block(source: Block, target: Block, mapping: IrMapping) -> None:
    """Append copies of all operations of `source` to `target`."""
    for op in source:
        target.append(clone_operation(op, mapping))
