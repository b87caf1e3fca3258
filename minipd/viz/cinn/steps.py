"""Drawing how a schedule comes about: the loop nests after each primitive, one panel after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from minipd.cinn.compile import made_of
from minipd.cinn.ir.ast import Function
from minipd.cinn.lower import CannotLower
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.trace import Trace
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.viz.cinn.groups import grouped, is_group
from minipd.viz.cinn.loops import Look, draw, places
from minipd.viz.svg import Sheet, Svg

__all__ = ["Frame", "frames_of", "steps", "strip"]

ACROSS = 1500               # pixels, after which a new row begins
MOST = 12                   # steps that have a panel each
GAP, LINE, SIZE, WIDE = 26, 15, 11.5, 46


class Frame(NamedTuple):
    """One panel.  caption: the primitive that led to it, as it is called.  above: what else is to be said, such as the
    tactic whose primitive it is."""

    function: Function
    caption: str = ""
    above: str = ""


def steps(of: Program | Operation | Function, trace: Trace | None = None, title: str = "schedules") -> Svg:
    """The picture of schedules, one strip below the other: of a program's fusion groups, of one group, or of a function
    in block form that the steps of `trace` transform.

    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.framework.meta import Meta
    >>> from minipd.ir.traced import trace
    >>> steps(trace(lambda x: x.exp().sum(-1), Meta((8, 64), dtypes.float32.np)).program)
    <Svg 'schedules', ...>

    Raises: ValueError if nothing of it has loops; ScheduleError if the trace is one of another function.
    """
    found = [(of.name, frames_of(of, trace or Trace()))] if isinstance(of, Function) else list(schedules_of(of))
    if not found:
        raise ValueError(f"steps: expected something that the compiler makes loops of, got a {type(of).__name__} "
                         "that stays library kernels; see its groups with viz.groups")
    sheet = Sheet(title)
    y = 0.0
    for name, frames in found:
        if len(found) > 1:
            sheet.text(0, y + 12, name, "bold", 13)
            y += 22
        y = lay(sheet, frames, y) + 2 * GAP
    return sheet.done()


def schedules_of(of: Program | Operation) -> Iterator[tuple[str, Iterator[Frame]]]:
    """The kernels of a program's groups, or of one group, by name, with their frames; equal ones once."""
    seen: set[str] = set()
    for op in [of] if isinstance(of, Operation) else [o for o in grouped(of).program.walk() if is_group(o)]:
        try:
            made = made_of(op)
        except (CannotLower, ScheduleError):
            continue
        if made.function.name not in seen:
            seen.add(made.function.name)
            yield made.function.name, frames_of(made.lowered, made.scheduled.trace, made.scheduled.tactics)


def strip(frames: Iterable[Frame], title: str = "a schedule") -> Svg:
    """The picture of frames, from left to right, then in the next row.

    What a primitive has made or moved is yellow, and lines that are new, or stand in other loops, are bold.
    """
    sheet = Sheet(title)
    lay(sheet, frames, 0)
    return sheet.done()


def lay(sheet: Sheet, frames: Iterable[Frame], y: float) -> float:
    """Draw frames from y on down; returns where they end."""
    x = row = 0.0
    known: frozenset[str] | None = None
    for number, frame in enumerate(frames):
        panel, known = _panel(frame, number, known)
        if x and x + panel.width > ACROSS:
            x, y, row = 0.0, y + row + GAP, 0.0
        sheet.place(panel, x, y)
        x, row = x + panel.width + GAP, max(row, panel.height)
    return y + row


def _panel(frame: Frame, number: int, known: frozenset[str] | None) -> tuple[Sheet, frozenset[str]]:
    """A panel, and what there is in it; known: what there was before."""
    sheet = Sheet("")
    sheet.reach(0, 0)
    y = 0.0
    if frame.above:
        sheet.text(0, y + 11, frame.above, "dim", SIZE)
    y += LINE
    words = f"{number}  {frame.caption}" if frame.caption else "as lowered"
    for i, line in enumerate(wrap(words, WIDE, break_on_hyphens=False)):
        sheet.text(12 * bool(i), y + 11, line, "mono bold", SIZE)
        y += LINE
    draw(sheet, frame.function.body, 0, y + 2, Look(True, known))
    return sheet, frozenset(places(frame.function.body))


def frames_of(lowered: Function, trace: Trace, tactics: Sequence[tuple[str, int, int]] = (),
              most: int = MOST) -> Iterator[Frame]:
    """The frames of a schedule.  tactics: (name, number of its first step, of the step behind its last).

    A schedule of more than `most` steps has one frame for those of one primitive that follow each other.
    """
    tactic_of = {n: name for name, first, behind in tactics for n in range(first, behind)}
    s = IRSchedule(lowered)
    yield Frame(lowered)
    steps = trace.steps
    first = 0
    for number, step in enumerate(steps):
        s.apply(step.primitive, *step.args)
        last = number + 1 == len(steps) or len(steps) <= most or (steps[number + 1].primitive, tactic_of.get(
            number + 1)) != (step.primitive, tactic_of.get(number))
        if last:
            caption = str(step) if number == first else (
                f"{step.primitive} of " + ", ".join(str(each.args[0]) for each in steps[first:number + 1]))
            above = tactic_of.get(first, "")
            yield Frame(s.function, caption, "" if first and tactic_of.get(first - 1, "") == above else above)
            first = number + 1
