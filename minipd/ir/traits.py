"""What passes and the verifier may assume of an operation, beyond the traits of its row.

Row traits (`View`, `Inplace`, `SideEffect`, ...) describe computation and live in `framework.row.Trait`.  The ones here
describe the place of an operation in a program; an operation has the union of both.
"""

from __future__ import annotations

import enum

__all__ = ["IrTrait"]


class IrTrait(enum.Enum):
    """Structural properties of operations."""

    TERMINATOR = "Terminator"           # ends a block of a region, and stands nowhere else
    CONSTANT = "Constant"               # no operands, and its value is written in its attributes
    READS_STATE = "ReadsState"          # reads the program's state; moves over no write of the same name
    SIDE_EFFECT = "SideEffect"          # removing it changes what a run does, though nothing uses its results
