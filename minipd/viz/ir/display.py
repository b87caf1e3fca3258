"""A program shows itself, an operation with regions too; a value and a plain operation show their use-def chains; a
graph of instructions and a schedule of streams show themselves.

A program of more than `MANY` operations does not: its picture is a map of many screens.  `viz.program` draws it, or a
part.
"""

from __future__ import annotations

from minipd.executor.schedule import Dependencies, Schedule
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.shown import shown_by

__all__: list[str] = []

MANY = 200


def _program(self: Program) -> str | None:
    return shown_by("program")(self) if self.num_ops() <= MANY else None


def _operation(self: Operation) -> str:
    return shown_by("program" if self.regions else "use_def")(self)


Program._repr_svg_ = _program                           # type: ignore[attr-defined]
Operation._repr_svg_ = _operation                       # type: ignore[attr-defined]
Dependencies._repr_svg_ = shown_by("dependencies")      # type: ignore[attr-defined]
Schedule._repr_svg_ = shown_by("streams")               # type: ignore[attr-defined]
Value._repr_svg_ = shown_by("use_def")                  # type: ignore[attr-defined]
