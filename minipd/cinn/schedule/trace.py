"""What was done to a function, as plain data: a list of primitives with their arguments, to be shown, kept and done
again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minipd.cinn.ir.ast import Function
from minipd.cinn.schedule.errors import ScheduleError

if TYPE_CHECKING:
    from minipd.cinn.schedule.ir_schedule import IRSchedule

__all__ = ["Step", "Trace"]


@dataclass(frozen=True)
class Step:
    """A primitive, what it was given, and the names that it made.

    >>> print(Step("split", ("i_y0", (-1, 64)), ("i_y0_0", "i_y0_1")))
    s.split('i_y0', [-1, 64])
    """

    primitive: str
    args: tuple[Any, ...]
    outputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"s.{self.primitive}({', '.join(repr(_plain(a)) for a in self.args)})"


@dataclass(frozen=True)
class Trace:
    """
    >>> trace = Trace((Step("fuse", (("i_y0", "j_y0"),), ("i_y0_fused",)), Step("parallel", ("i_y0_fused",))))
    >>> print(trace)
    s.fuse(['i_y0', 'j_y0'])
    s.parallel('i_y0_fused')
    >>> Trace.from_json(trace.to_json()) == trace
    True
    """

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))

    def replay(self, function: Function) -> IRSchedule:
        """Do it all again.

        Raises: ScheduleError if it does not fit the function.
        """
        from minipd.cinn.schedule.ir_schedule import IRSchedule
        s = IRSchedule(function)
        for _ in self._replayed(s):
            pass
        return s

    def explain(self, function: Function) -> str:
        """The text of the function before the first and after each step."""
        from minipd.cinn.ir.printer import text
        from minipd.cinn.schedule.ir_schedule import IRSchedule
        s = IRSchedule(function)
        parts = [f"## before\n{text(function)}"]
        parts += [f"## {step}\n{text(s.function)}" for step in self._replayed(s)]
        return "\n".join(parts)

    def _replayed(self, s: IRSchedule) -> Iterator[Step]:
        """Each step, when it has been done."""
        function = s.function
        for n, step in enumerate(self.steps):
            try:
                s.apply(step.primitive, *step.args)
            except (ScheduleError, TypeError) as error:
                raise ScheduleError(f"step {n} of the trace, {step}, does not fit {function.name}: {error}") from None
            made = s.trace.steps[-1].outputs
            if made != step.outputs:
                raise ScheduleError(f"step {n} of the trace, {step}, made {', '.join(step.outputs) or 'nothing'}; in "
                                    f"{function.name} it makes {', '.join(made) or 'nothing'}: the trace is one of "
                                    "another function")
            yield step

    def to_json(self) -> str:
        return json.dumps([{"primitive": s.primitive, "args": s.args, "outputs": s.outputs} for s in self.steps])

    @staticmethod
    def from_json(text: str) -> Trace:
        """What `to_json` has written.   Raises: ScheduleError if it is something else."""
        try:
            return Trace(tuple(Step(s["primitive"], tuple(map(_frozen, s["args"])), tuple(s["outputs"]))
                               for s in json.loads(text)))
        except (ValueError, KeyError, TypeError) as error:
            raise ScheduleError(f"expected a trace as JSON, a list of primitives with args and outputs, got "
                                f"{text[:60]!r}: {error}") from None


def _plain(a: Any) -> Any:
    return [_plain(x) for x in a] if isinstance(a, tuple) else a


def _frozen(a: Any) -> Any:
    return tuple(map(_frozen, a)) if isinstance(a, list) else a
