"""A program shows itself, an operation with regions too; a value and a plain operation show their use-def chains; a
graph of instructions and a schedule of streams show themselves, an executor its memory plan if its sizes are known.

A program of more than `MANY` operations is a page of its layers, closed: its picture would be a map of many screens.
Without layers it is not shown; `viz.program` draws it, or a part.
"""

from __future__ import annotations

from minipd.executor import Executor
from minipd.executor.schedule import Dependencies, Schedule
from minipd.framework.dim import is_symbolic
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.viz.ir.layers import layers
from minipd.viz.ir.program import layers_of
from minipd.viz.shown import shown_by

__all__: list[str] = []

MANY = 200


def _program(self: Program) -> str | None:
    return shown_by("program")(self) if self.num_ops() <= MANY else None


def _page(self: Program) -> str | None:
    if self.num_ops() <= MANY or not any(map(layers_of, self.global_block())):
        return None
    return layers(self, open=0)._repr_html_()


def _plan(self: Executor) -> str | None:
    return None if any(is_symbolic(v.shape) for v in self.inputs.values()) else shown_by("memory")(self)


def _operation(self: Operation) -> str:
    return shown_by("program" if self.regions else "use_def")(self)


Executor._repr_svg_ = _plan                             # type: ignore[attr-defined]
Program._repr_html_ = _page                             # type: ignore[attr-defined]
Program._repr_svg_ = _program                           # type: ignore[attr-defined]
Operation._repr_svg_ = _operation                       # type: ignore[attr-defined]
Dependencies._repr_svg_ = shown_by("dependencies")      # type: ignore[attr-defined]
Schedule._repr_svg_ = shown_by("streams")               # type: ignore[attr-defined]
Value._repr_svg_ = shown_by("use_def")                  # type: ignore[attr-defined]
