"""Drawing how a schedule comes about: the loop nests after each primitive, one panel after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import NamedTuple

from minipd.cinn.ir.ast import Function
from minipd.viz.cinn.loops import Look, draw, places
from minipd.viz.svg import Sheet, Svg

__all__ = ["Frame", "strip"]

ACROSS = 1500               # pixels, after which a new row begins
GAP, LINE, SIZE, WIDE = 26, 15, 11.5, 46


class Frame(NamedTuple):
    """One panel.  caption: the primitive that led to it, as it is called.  above: what else is to be said, such as the
    tactic whose primitive it is."""

    function: Function
    caption: str = ""
    above: str = ""


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


def stations(lowered: Function, steps: Iterable[tuple[str, Function]], tactic_of: dict[int, str]) -> Iterator[Frame]:
    """The frames of a schedule.  steps: each primitive as it is called, and the function after it.  tactic_of: number of
    a step -> the tactic that begins with it."""
    yield Frame(lowered)
    for i, (caption, function) in enumerate(steps):
        yield Frame(function, caption, tactic_of.get(i, ""))
