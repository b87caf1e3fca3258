"""Drawing runs: a lane for each stream or thread, a box for each instruction, as long as it took.

`streams` draws a schedule on the simulated clock, with an arrow for each event: from where it is recorded to where it
is waited for.  `run` draws what a profiler has measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from minipd.executor.schedule import Instruction, Schedule, Timeline, simulate
from minipd.profiler.recording import Span, TracerEventType
from minipd.viz.chart import round_step, time_axis
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["run", "streams"]

WIDTH, LANE, BESIDE = 760.0, 30, 16         # pixels
#: stream or kind -> colour
COLOURS = {"compute": "forward", "communication": "comm", "h2d": "input", "d2h": "output", "Operator": "forward",
           "Communication": "comm", "Backward": "backward", "Optimization": "optimizer"}
#: factor from seconds -> what it is called
UNITS = ((1e6, "us", 1e-3), (1e3, "ms", 1.0), (1.0, "s", float("inf")))


class Box(NamedTuple):
    """What took from start to end, in seconds, in a lane.  kind: of its colour.  tip: what more is said of it."""

    lane: int
    words: str
    start: float
    end: float
    kind: str
    tip: str = ""


def streams(schedule: Schedule, cost: Callable[[Instruction], float] | None = None, title: str = "") -> Svg:
    """The picture of a schedule on the simulated clock.

    cost: seconds that an instruction takes; those of `executor.schedule.seconds_of` if not given.
    Raises: what `simulate` raises.

    >>> from minipd.executor import Executor
    >>> from minipd.executor.schedule import schedule
    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> program = trace(lambda x: x.exp() + x.tanh(), Meta((2,), dtypes.float32.np)).program
    >>> streams(schedule(Executor(program).dependencies()))
    <Svg 'schedule of 1 stream', ...>
    """
    line: Timeline = simulate(schedule, cost)
    names = list(schedule.lanes)
    lane = {name: i for i, name in enumerate(names)}
    boxes = [Box(lane[s.stream], s.instruction.label.split()[0], s.start, s.end, COLOURS.get(s.stream, "use"),
                 repr(s.instruction)) for s in line.slots]
    slots = {s.instruction.index: s for s in line.slots}
    arrows = [((lane[schedule.stream[e.after]], slots[e.after].end), (lane[schedule.stream[i]], slots[i].start),
               f"event {e.number}: {slots[i].instruction!r} waits for {slots[e.after].instruction!r}")
              for e in schedule.events for i in e.waits]
    return _draw(boxes, names, arrows, title or f"schedule of {len(names)} stream{'s' * (len(names) > 1)}")


def run(spans: Iterable[Span], title: str = "") -> Svg:
    """The picture of what a profiler has recorded: operators and instructions by thread, those that last inside others
    (a compiled call around its instructions) in lanes below them.

    Raises: ValueError if there are no spans.
    """
    found = sorted((s for s in spans if s.kind is not TracerEventType.ProfileStep), key=lambda s: (s.start, -s.seconds))
    if not found:
        raise ValueError("run: expected spans that a profiler has recorded, got none")
    lanes: dict[tuple[int, int], int] = {}          # thread and depth -> lane
    ends: dict[tuple[int, int], float] = {}         # -> the end of its last box
    begin, boxes = found[0].start, []
    for span in found:
        depth = 0
        while ends.get((span.thread, depth), begin) > span.start:
            depth += 1
        ends[span.thread, depth] = span.start + span.seconds
        lane = lanes.setdefault((span.thread, depth), len(lanes))
        tip = ", ".join(f"{k} {v}" for k, v in (span.detail or {}).items())
        start = span.start - begin
        boxes.append(Box(lane, span.name, start, start + span.seconds, COLOURS.get(span.kind.name, "use"),
                         f"{span.name}, {tip}" if tip else span.name))
    threads = list(dict.fromkeys(thread for thread, _ in lanes))
    names = [f"thread {threads.index(thread)}" + f", level {depth}" * (depth > 0) for thread, depth in lanes]
    return _draw(boxes, names, [], title or f"run of {len(found)} spans")


def _draw(boxes: Sequence[Box], lanes: Sequence[str], arrows: Sequence[tuple], title: str) -> Svg:
    sheet = Sheet(title)
    whole = max((b.end for b in boxes), default=0.0) or 1.0
    factor, unit, _ = next(u for u in UNITS if whole < u[2])
    shortest = min((b.end - b.start for b in boxes if b.end > b.start), default=whole)
    width = min(max(WIDTH, whole / shortest * 14), 4 * WIDTH)
    scale, left = width / whole, max(text_width(name, 11) for name in lanes) + 12

    def y(lane: int) -> float:
        return lane * (LANE + BESIDE)
    for i, name in enumerate(lanes):
        busy = sum(b.end - b.start for b in boxes if b.lane == i)
        sheet.text(left - 10, y(i) + LANE / 2 + 4, name, "end", 11)
        sheet.rect(left, y(i), width, LANE, "idle", f"{name} is at work {busy / whole:.0%} of the time", 3)
        sheet.text(left + width + 10, y(i) + LANE / 2 + 4, f"busy {busy / whole:.0%}", "dim", 11)
    for box in boxes:
        x, wide = left + box.start * scale, max((box.end - box.start) * scale, 1)
        sheet.rect(x, y(box.lane), wide, LANE, box.kind,
                   f"{box.tip}: {box.start * factor:.4g} to {box.end * factor:.4g} {unit}", 2)
        if text_width(box.words, 10) < wide - 2:
            sheet.text(x + wide / 2, y(box.lane) + LANE / 2 + 4, box.words, "mid", 10)
    for (a, recorded), (b, waited), tip in arrows:
        down = b > a
        ends = [(left + recorded * scale, y(a) + LANE * down), (left + waited * scale, y(b) + LANE * (not down))]
        sheet.line(ends, "way", arrow=True, tip=tip)
    time_axis(sheet, left, y(len(lanes)), width, whole * factor, f"time in {unit}", round_step(whole * factor, 10))
    return sheet.done()
