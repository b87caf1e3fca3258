"""Regions: the blocks that an operation owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minipd.ir.block import Block
    from minipd.ir.operation import Operation

__all__ = ["Region"]


class Region:
    """The blocks of one region of `parent_op`; a region of a program has one (`global_block`)."""

    __slots__ = ("blocks", "parent_op")

    def __init__(self, parent_op: Operation | None = None):
        self.parent_op = parent_op
        self.blocks: list[Block] = []

    def add_block(self) -> Block:
        """A new empty block at the end."""
        from minipd.ir.block import Block
        block = Block(self)
        self.blocks.append(block)
        return block

    def front(self) -> Block:
        """The entry block."""
        return self.blocks[0]

    def empty(self) -> bool:
        return not self.blocks
