"""A kernel's stations with the names that operators have in their program.

Lowering numbers the operators of each group from 0, so that equal groups have one kernel; who looks at a whole program
numbers all that it looks at.  `as_in_program` puts the second numbers where the first ones are, in functions and in
the trace between them, so that one may be read beside the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from minipd.cinn.compile import Made
from minipd.cinn.frontend.tracker import NAME
from minipd.cinn.ir.ast import Function
from minipd.cinn.ir.walk import rename
from minipd.cinn.lower.calls import calls_of
from minipd.cinn.schedule.trace import Trace
from minipd.ir.operation import Operation

__all__ = ["as_in_program"]


def as_in_program(made: Made, group: Operation) -> Made:
    """The same, of a `cinn_op.fusion` whose operators keep their names (`FusionTracker`).

    Views, of which each group has copies, have no number in the program: they become `slice_v3`.
    """
    names = {}
    for call in calls_of(group.regions[0].front()):
        known = call.op.attributes.get(NAME)
        names[f"{call.name}_{call.number}"] = f"{call.name}_v{call.number}" if known is None else known.value
    to = _Renamed(names)
    scheduled = replace(made.scheduled, function=_function(made.scheduled.function, to),
                        trace=_trace(made.scheduled.trace, to))
    return made._replace(lowered=_function(made.lowered, to), scheduled=scheduled,
                         function=_function(made.function, to))


class _Renamed(Mapping[str, str]):
    """Any name -> the one with other operators in it.

    >>> to = _Renamed({"exp_2": "exp_7", "sum_7": "sum_12"})
    >>> to["i_exp_2"], to["sum_7__reduce_init"], to["exp_21"], to["vi"]
    ('i_exp_7', 'sum_12__reduce_init', 'exp_21', 'vi')
    """

    def __init__(self, names: Mapping[str, str]):
        self._names = names
        self._any = re.compile(f"(?<![^_])(?:{'|'.join(map(re.escape, names))})(?![^_])") if names else None

    def __getitem__(self, name: str) -> str:
        return name if self._any is None else self._any.sub(lambda found: self._names[found[0]], name)

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _function(function: Function, to: _Renamed) -> Function:
    return replace(function, body=rename(function.body, to, to, to))


def _trace(trace: Trace, to: _Renamed) -> Trace:
    def renamed(a: Any) -> Any:
        return tuple(map(renamed, a)) if isinstance(a, tuple) else to[a] if isinstance(a, str) else a

    return Trace(tuple(replace(s, args=renamed(s.args), outputs=renamed(s.outputs)) for s in trace.steps))
