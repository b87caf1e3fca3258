"""A trace as tables: what took how long, by operator and by the spans that users named."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minipd.profiler.recording import Span, TracerEventType

__all__ = ["SortedKeys", "SummaryView"]


class SortedKeys(enum.Enum):
    """By which column a table is sorted, the largest first.  (What is GPU there is CPU here.)"""

    CPUTotal = 0
    CPUAvg = 1
    CPUMax = 2
    CPUMin = 3
    GPUTotal = 4
    GPUAvg = 5
    GPUMax = 6
    GPUMin = 7


class SummaryView(enum.Enum):
    """Which tables to print.  Those that there are: OverView, OperatorView, MemoryView, UDFView."""

    DeviceView = 0
    OverView = 1
    ModelView = 2
    DistributedView = 3
    KernelView = 4
    OperatorView = 5
    MemoryView = 6
    MemoryManipulationView = 7
    UDFView = 8


UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


class Line(NamedTuple):
    """Calls of one name: how many, and their seconds."""

    name: str
    calls: int
    total: float
    mean: float
    most: float
    least: float
    size: int       # bytes of results


def lines_of(spans: Sequence[Span], sorted_by: SortedKeys = SortedKeys.CPUTotal) -> list[Line]:
    """One line per name.

    >>> kind = TracerEventType.Operator
    >>> [a, b] = lines_of([Span("add", kind, 0, 1.0, 0), Span("mul", kind, 1, 5.0, 0), Span("add", kind, 6, 2.0, 0)])
    >>> a.name, b
    ('mul', Line(name='add', calls=2, total=3.0, mean=1.5, most=2.0, least=1.0, size=0))
    """
    times, sizes = defaultdict[str, list[float]](list), defaultdict[str, int](int)
    for s in spans:
        times[s.name].append(s.seconds)
        sizes[s.name] += (s.detail or {}).get("bytes", 0)
    lines = [Line(name, len(t), sum(t), sum(t) / len(t), max(t), min(t), sizes[name]) for name, t in times.items()]
    key: Callable[[Line], float] = (lambda x: x.total, lambda x: x.mean, lambda x: x.most,
                                    lambda x: x.least)[sorted_by.value % 4]
    return sorted(lines, key=key, reverse=True)


def summary(spans: Sequence[Span], sorted_by: SortedKeys, time_unit: str, views: Any) -> str:
    """The tables as text.   ValueError for an unknown unit."""
    if time_unit not in UNITS:
        raise ValueError(f"summary: expected time_unit to be one of {', '.join(UNITS)}, got {time_unit!r}")
    wanted = set(SummaryView) if views is None else set(views if isinstance(views, (list, tuple, set)) else [views])
    operators = [s for s in spans if s.kind is TracerEventType.Operator]
    steps = [s for s in spans if s.kind is TracerEventType.ProfileStep]
    users = [s for s in spans if s.kind not in (TracerEventType.Operator, TracerEventType.ProfileStep)]
    whole = sum(s.seconds for s in steps) or sum(s.seconds for s in operators)
    out = []
    if SummaryView.OverView in wanted:
        kinds = [Line(f"{kind.name}", len(found), sum(f.seconds for f in found), 0, 0, 0, 0)
                 for kind in TracerEventType if (found := [s for s in spans if s.kind is kind])]
        out.append(_table("Overview Summary", ("Event Type", "Calls", f"CPU Time ({time_unit})", "Ratio (%)"), [
            (x.name, str(x.calls), _time(x.total, time_unit), _part(x.total, whole)) for x in kinds]))
    header = ("Name", "Calls", *(f"{word} ({time_unit})" for word in ("Total", "Avg", "Max", "Min")), "Ratio (%)")
    for view, title, found in ((SummaryView.OperatorView, "Operator Summary", operators),
                               (SummaryView.UDFView, "UserDefined Summary", users)):
        if view in wanted and found:
            out.append(_table(title, header, [
                (x.name, str(x.calls), *(_time(t, time_unit) for t in x[2:6]), _part(x.total, whole))
                for x in lines_of(found, sorted_by)]))
    sized = [x for x in lines_of(operators) if x.size]
    if SummaryView.MemoryView in wanted and sized:
        out.append(_table("Memory Summary", ("Name", "Calls", "Bytes of results"), [
            (x.name, str(x.calls), str(x.size)) for x in sorted(sized, key=lambda x: -x.size)]))
    return "\n\n".join(out)


def _time(seconds: float, unit: str) -> str:
    return f"{seconds * UNITS[unit]:.2f}" if unit != "s" else f"{seconds:.5f}"


def _part(seconds: float, whole: float) -> str:
    return f"{100 * seconds / whole:.2f}" if whole else "-"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    body = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in (header, *rows)]
    return "\n".join([f"{f' {title} ':-^{len(rule)}}", body[0], rule, *body[1:], rule])
