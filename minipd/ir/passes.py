"""What a pass is.  Floors above write passes and run them; this one only says what they agree on."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from minipd.ir.program import Program

__all__ = ["Pass"]


@runtime_checkable
class Pass(Protocol):
    """Changes a program in place, into one that computes the same.

    name: Paddle's name of the pass, where there is one.

    Invariant: a verified program stays one.  Inputs, outputs and the state that is written stay what they are.
    """

    name: str

    def run(self, program: Program) -> int:
        """Returns the number of changes: 0 means that the program is as it was."""
        ...
