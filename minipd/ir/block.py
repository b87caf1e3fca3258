"""Blocks: a list of operations, run in order.

The list is doubly linked through the operations, so inserting and removing cost the same anywhere, and a pass may erase
the operation it is looking at.  `is_before` uses numbers that leave gaps, from which an operation that comes between
two gets its own; when a gap is used up, all are handed out again the next time that they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minipd.ir.types import Type
from minipd.ir.value import BlockArgument

if TYPE_CHECKING:
    from minipd.ir.operation import Operation
    from minipd.ir.region import Region

__all__ = ["Block"]

#: how far apart the numbers of neighbours are when they are handed out
APART = 1 << 32


class Block:
    """Operations and arguments.  Iterating is safe while the operation at hand is erased or moved."""

    __slots__ = ("_args", "_first", "_last", "_numbered", "_size", "region")

    def __init__(self, region: Region | None = None):
        self.region = region
        self._args: list[BlockArgument] = []
        self._first: Operation | None = None
        self._last: Operation | None = None
        self._size = 0
        self._numbered = True

    # ----------------------------------------------------------------------------------------------- contents
    @property
    def ops(self) -> list[Operation]:
        """The operations, as a list of now."""
        return list(self)

    def __iter__(self) -> Iterator[Operation]:
        op = self._first
        while op is not None:
            following = op.next
            yield op
            op = following

    def __len__(self) -> int:
        return self._size

    def num_ops(self) -> int:
        return self._size

    def empty(self) -> bool:
        return self._first is None

    def front(self) -> Operation | None:
        return self._first

    def back(self) -> Operation | None:
        return self._last

    def args(self) -> list[BlockArgument]:
        return list(self._args)

    def add_arg(self, type: Type) -> BlockArgument:
        self._args.append(BlockArgument(type, self, len(self._args)))
        return self._args[-1]

    # ------------------------------------------------------------------------------------------------ changes
    def append(self, op: Operation) -> Operation:
        """Put `op` at the end."""
        return self.insert_before(None, op)

    def check_outside(self, op: Operation) -> None:
        """Raise ValueError if this block is inside of `op`, which then cannot stand in it."""
        outer = self.parent_op if op.regions else None
        while outer is not None:
            if outer is op:
                raise ValueError(f"insert {op.name()}: expected a block outside of the operation, got one in its own "
                                 "regions")
            outer = outer.get_parent_op()

    def insert_before(self, place: Operation | None, op: Operation) -> Operation:
        """Put `op` before `place`, None for the end."""
        if op.parent is not None:
            raise ValueError(f"insert {op.name()}: expected an operation in no block, got one in a block; use "
                             "move_before")
        self.check_outside(op)
        before = self._last if place is None else place.prev
        op.prev, op.next, op.parent = before, place, self
        if before is None:
            self._first = op
        else:
            before.next = op
        if place is None:
            op.order = before.order + APART if before is not None else 0
            self._last = op
        else:
            place.prev = op
            op.order = (place.order + (place.order - APART if before is None else before.order)) // 2
            self._numbered &= op.order < place.order and (before is None or before.order < op.order)
        self._size += 1
        return op

    def remove(self, op: Operation) -> None:
        """Take `op` out of the list, unchanged otherwise (`op.erase()` also lets go of its operands)."""
        assert op.parent is self, f"{op.name()} is not in this block"
        if op.prev is None:
            self._first = op.next
        else:
            op.prev.next = op.next
        if op.next is None:
            self._last = op.prev
        else:
            op.next.prev = op.prev
        op.prev = op.next = op.parent = None
        self._size -= 1

    def move_op(self, op: Operation, place: Operation) -> None:
        """Paddle's name for `op.move_before(place)`."""
        op.move_before(place)

    def move_op_to_block_end(self, op: Operation) -> None:
        """Take `op` out of its place, in whatever block, and put it at the end of this one."""
        if op.parent is not None:
            op.parent.remove(op)
        self.append(op)

    def take_over(self, other: Block, place: Operation | None = None) -> None:
        """Move all operations of `other` here, before `place` (None: to the end).  Their values stay the same, so uses
        of the arguments of `other` must have been replaced.

        Raises: ValueError if one has not.
        """
        for arg in other.args():
            if not arg.use_empty():
                raise ValueError(f"take_over: expected block arguments without users, but argument {arg.index()} is "
                                 f"used by {arg.all_used_ops()[0].name()}; replace its uses first")
        for op in other:
            other.remove(op)
            self.insert_before(place, op)

    def erase_arg(self, index: int) -> None:
        """Remove an argument; those behind it move up.

        Raises: ValueError if it is still used.
        """
        if not self._args[index].use_empty():
            raise ValueError(f"erase_arg: expected an argument without users, but argument {index} is used by "
                             f"{self._args[index].all_used_ops()[0].name()}; replace its uses first")
        del self._args[index]
        for i, arg in enumerate(self._args):
            arg._index = i

    def remove_op(self, op: Operation) -> None:
        """Paddle's name for `op.erase()`."""
        op.erase()

    def number(self) -> None:
        """Make the operations' `order` valid."""
        if not self._numbered:
            for i, op in enumerate(self):
                op.order = i * APART
            self._numbered = True

    # -------------------------------------------------------------------------------------------------- place
    @property
    def parent_op(self) -> Operation | None:
        """The operation that owns this block; None for a program's global block."""
        return None if self.region is None else self.region.parent_op

    @property
    def parent_block(self) -> Block | None:
        return None if self.parent_op is None else self.parent_op.parent

    def all_parameters(self) -> list:
        """The values of parameters defined in this block."""
        return [op.result(0) for op in self if op.name() == "builtin.parameter"]
