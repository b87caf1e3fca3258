"""What a profiler sees: operators, through a layer of the context's events, and spans that users name.

While nothing records, there is no such layer, and a `RecordEvent` finds nobody to tell.
"""

from __future__ import annotations

import enum
import functools
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from minipd.framework.meta import describe
from minipd.framework.rank import current

__all__ = ["RecordEvent", "TracerEventType"]


class TracerEventType(enum.Enum):
    """Of what kind a span is."""

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    Forward = 9
    Backward = 10
    Optimization = 11
    Communication = 12
    PythonUserDefined = 14


class Span(NamedTuple):
    """Something that took time: seconds, by `time.perf_counter`.  detail: further facts by name, or None."""

    name: str
    kind: TracerEventType
    start: float
    seconds: float
    thread: int
    detail: dict[str, Any] | None = None


class Recording:
    """The layer: a Span for every operator.   outer: another layer of events, which goes on.

    shapes: note the operands' shapes.  memory: note the results' bytes.
    """

    def __init__(self, outer: Any, shapes: bool = False, memory: bool = False):
        self.outer, self.shapes, self.memory = outer, shapes, memory
        self.spans: list[Span] = []

    def over(self, run: Callable) -> Callable:
        """The interpreter function `run`, timed."""
        run = run if self.outer is None else self.outer.over(run)
        clock, thread, operator = time.perf_counter, threading.get_ident(), TracerEventType.Operator

        def timed(row: Any, payloads: Any, attrs: dict) -> Any:
            start = clock()
            out = run(row, payloads, attrs)
            seconds = clock() - start
            detail = self.detail(row, payloads, out) if self.shapes or self.memory else None
            self.spans.append(Span(row.name, operator, start, seconds, thread, detail))
            return out
        return timed

    def detail(self, row: Any, payloads: Any, out: Any) -> dict[str, Any]:
        """What is noted of a call, beside the time."""
        found: dict[str, Any] = {}
        if self.shapes:
            found["inputs"] = [describe(p) for p in payloads]
        if self.memory:
            found["bytes"] = sum(getattr(x, "nbytes", 0) for x in (out if row.multi else (out,)))
        return found


def recording() -> Recording | None:
    """The layer that records now, if one does."""
    layer = current().events
    while layer is not None and not isinstance(layer, Recording):
        layer = layer.outer
    return layer


def spanned(name: str, kind: TracerEventType, run: Callable, *args: Any, **kwargs: Any) -> Any:
    """`run(*args, **kwargs)`, as one span if anybody records."""
    layer = None if current().events is None else recording()
    if layer is None:
        return run(*args, **kwargs)
    start = time.perf_counter()
    out = run(*args, **kwargs)
    layer.spans.append(Span(name, kind, start, time.perf_counter() - start, threading.get_ident()))
    return out


class RecordEvent:
    """A span of one's own: `with RecordEvent("name"):`, as a decorator, or from `begin()` to `end()`."""

    def __init__(self, name: str, event_type: TracerEventType = TracerEventType.PythonUserDefined):
        self.name, self.event_type = name, event_type
        self._started: list[float] = []

    def begin(self) -> None:
        """The span begins."""
        self._started.append(time.perf_counter())

    def end(self) -> None:
        """The span ends.   Without a `begin`, nothing happens."""
        if not self._started:
            return
        start, now, layer = self._started.pop(), time.perf_counter(), recording()
        if layer is not None:
            layer.spans.append(Span(self.name, self.event_type, start, now - start, threading.get_ident()))

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with RecordEvent(self.name, self.event_type):
                return function(*args, **kwargs)
        return recorded
