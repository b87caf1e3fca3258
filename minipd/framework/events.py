"""Events: who ran, for how long.  A layer over the interpreters; when it is off, nothing of it is in the call path."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from minipd.framework.context import using
from minipd.framework.rank import current

__all__: list[str] = []


class Event(NamedTuple):
    """One operator call: its name, when it began and how long it took (seconds, `time.perf_counter`)."""

    name: str
    start: float
    seconds: float


class Recorder:
    """Collects an Event for every operator that the layers below run.  `outer` is a recorder that goes on meanwhile."""

    def __init__(self, outer: Recorder | None = None) -> None:
        self.events: list[Event] = []
        self.outer = outer

    def over(self, run: Callable) -> Callable:
        """The interpreter function `run`, timed."""
        run = run if self.outer is None else self.outer.over(run)
        clock, append = time.perf_counter, self.events.append

        def timed(row: Any, payloads: Any, attrs: dict) -> Any:
            start = clock()
            out = run(row, payloads, attrs)
            append(Event(row.name, start, clock() - start))
            return out
        return timed


class record:
    """Record the operators that run inside.

    >>> from minipd.ops.creation import ones
    >>> with record() as events:
    ...     y = ones([2]) + ones([2])
    >>> [e.name for e in events]
    ['full', 'full', 'add']
    """

    def __enter__(self) -> list[Event]:
        recorder = Recorder(current().events)
        self.layers = using(events=recorder)
        self.layers.__enter__()
        return recorder.events

    def __exit__(self, *exc: object) -> None:
        self.layers.__exit__(*exc)
