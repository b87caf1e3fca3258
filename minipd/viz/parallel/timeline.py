"""Drawing a pipeline: a lane for each rank, a box for each job, as long as it took; what is empty is bubble.

`timeline` draws what was measured: the records that a step leaves (`timeline.json` of a run).  `schedule` draws the
ideal: when each job would run if nothing but jobs took time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minipd.parallel.pipeline.check import COSTS, simulate
from minipd.parallel.pipeline.schedule import Job
from minipd.viz.chart import round_step, time_axis
from minipd.viz.style import text_width
from minipd.viz.svg import Sheet, Svg

__all__ = ["schedule", "timeline"]

WIDTH, LANE, BESIDE = 760.0, 30, 7          # pixels
KINDS = ("forward", "backward", "optimizer")


class Bar(NamedTuple):
    """A job in a lane, from start to end, in the unit of the picture."""

    lane: int
    type: str
    micro: int
    start: float
    end: float
    chunk: int = 0


def schedule(jobs: Sequence[Sequence[Job]], costs: Mapping[str, int] | None = None, title: str = "") -> Svg:
    """The picture of a schedule: a list of jobs for each stage, as `pipeline.schedule.schedule` gives.

    costs: how long a job of each type takes (a backward job about twice as long as a forward one); 1 each if not given.
    Raises: ValueError if the stages would wait for each other for ever.

    >>> from minipd.parallel.pipeline.schedule import schedule as jobs_of
    >>> schedule(jobs_of("1F1B", stages=2, n_micro=4))
    <Svg 'pipeline of 2 stages', ...>
    """
    costs = {**COSTS, "optimizer": 1} if costs is None else costs
    found = [list(stage) for stage in jobs]
    bars = [Bar(t.stage, t.job.type, t.job.micro, t.start, t.end, t.job.chunk) for t in simulate(found, costs)]
    lanes = [f"stage {i}" for i in range(len(found))]
    return _draw(bars, lanes, "jobs", title or f"pipeline of {len(found)} stage{'s' * (len(found) > 1)}")


def timeline(records: Iterable[Mapping[str, Any]], title: str = "") -> Svg:
    """The picture of a measured step: records with rank, stage, type, micro, start and end, in seconds.

    Raises: ValueError if there is no record, or one lacks something.
    """
    rows = list(records)
    for i, row in enumerate(rows):
        missing = [key for key in ("rank", "stage", "type", "micro", "start", "end") if key not in row]
        if missing:
            raise ValueError(f"timeline, record {i}: expected rank, stage, type, micro, start and end, got no "
                             f"{', '.join(missing)}")
    if not rows:
        raise ValueError("timeline: expected records of at least one job, got none")
    ranks = sorted({(row["stage"], row["rank"]) for row in rows})
    lane = {rank: i for i, (_, rank) in enumerate(ranks)}
    begin = min(row["start"] for row in rows)
    bars = [Bar(lane[row["rank"]], row["type"], row["micro"], 1000 * (row["start"] - begin),
                1000 * (row["end"] - begin), row.get("chunk", 0)) for row in rows]
    lanes = [f"rank {rank}, stage {stage}" for stage, rank in ranks]
    return _draw(bars, lanes, "ms", title or f"measured step of {len(lanes)} rank{'s' * (len(lanes) > 1)}")


def _draw(bars: list[Bar], lanes: list[str], unit: str, title: str) -> Svg:
    sheet = Sheet(title)
    whole = max((bar.end for bar in bars), default=1) or 1
    shortest = min((b.end - b.start for b in bars if b.type != "optimizer" and b.end > b.start), default=whole)
    width = min(max(WIDTH, whole / shortest * 18), 4 * WIDTH)       # wide enough to tell the jobs apart, if that can be
    scale = width / whole
    left = max(text_width(name, 11) for name in lanes) + 12
    _legend(sheet, bars, left)
    for i, name in enumerate(lanes):
        y = 22 + i * (LANE + BESIDE)
        mine = [bar for bar in bars if bar.lane == i]
        busy = sum(bar.end - bar.start for bar in mine)
        sheet.text(left - 10, y + LANE / 2 + 4, name, "end", 11)
        sheet.rect(left, y, width, LANE, "idle", f"{name} waits {1 - busy / whole:.0%} of the time", 3)
        for bar in mine:
            _bar(sheet, bar, left + bar.start * scale, y, (bar.end - bar.start) * scale, unit)
        sheet.text(left + width + 10, y + LANE / 2 + 4, f"idle {max(1 - busy / whole, 0):.0%}", "dim", 11)
    time_axis(sheet, left, 22 + len(lanes) * (LANE + BESIDE), width, whole,
              "time in " + ("units" if unit == "jobs" else unit), round_step(whole, most=10))
    return sheet.done()


def _bar(sheet: Sheet, bar: Bar, x: float, y: float, width: float, unit: str) -> None:
    kind = bar.type if bar.type in KINDS else "use"
    words = "" if bar.type == "optimizer" else str(bar.micro)
    tip = f"{bar.type} {words}".strip() + f", {bar.start:.4g} to {bar.end:.4g} {unit}"
    sheet.rect(x, y, max(width, 1), LANE, kind, tip, 2)
    if words and text_width(words, 11) < width - 2:
        sheet.text(x + width / 2, y + LANE / 2 + 4, words, "mid" if not bar.chunk else "mid bold", 11)


def _legend(sheet: Sheet, bars: list[Bar], x: float) -> None:
    there = {bar.type for bar in bars}
    for kind in [k for k in KINDS if k in there] + ["idle"]:
        name = kind if kind in ("optimizer", "idle") else f"{kind}, with its micro-batch"
        sheet.rect(x, 0, 12, 12, kind, radius=2)
        sheet.text(x + 18, 10, name, "dim", 11)
        x += 18 + text_width(name, 11) + 20
