"""A program shows itself, an operation with regions too; a value and a plain operation show their use-def chains."""

from __future__ import annotations

from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.shown import shown_by

__all__: list[str] = []


def _operation(self: Operation) -> str:
    return shown_by("program" if self.regions else "use_def")(self)


Program._repr_svg_ = shown_by("program")                # type: ignore[attr-defined]
Operation._repr_svg_ = _operation                       # type: ignore[attr-defined]
Value._repr_svg_ = shown_by("use_def")                  # type: ignore[attr-defined]
