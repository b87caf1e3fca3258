"""The profiler: it records in the steps in which it is to, and hands over what it has."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.profiler import chrome, tables
from minipd.profiler.recording import Recording, Span, TracerEventType
from minipd.profiler.schedule import ProfilerState, ProfilerTarget, scheduler_of
from minipd.profiler.tables import SortedKeys
from minipd.profiler.timer import Timer

__all__ = ["Profiler"]

RECORDS = (ProfilerState.RECORD, ProfilerState.RECORD_AND_RETURN)


class Profiler:
    """Paddle's `profiler.Profiler`: what ran in a stretch of training, and for how long.

    Operators are recorded by a layer under the tape, so those of backward passes and of optimizers too.  A compiled
    function is a span, and so is every instruction that it runs, with its kernel and the bytes of its results.  In
    steps that are not recorded nobody looks.

    Args:
        targets: accepted; there is a CPU.
        scheduler: in which steps to record: a function of the step (`make_scheduler`), or (first, end).  Always, unless
            given.
        on_trace_ready: called with the profiler whenever a trace is complete; unless given, it writes the trace into
            ./profiler_log/, by `export_chrome_tracing`.
        record_shapes: note the shapes of operands.  profile_memory: note the bytes of results.
        timer_only: record nothing, only time the steps: see `step_info`.
        emit_nvtx, custom_device_types, with_flops: accepted, without effect.

    >>> from minipd.ops.creation import ones
    >>> with Profiler(on_trace_ready=lambda prof: None) as prof:
    ...     y = ones([2]) + ones([2])
    ...     prof.step()
    >>> [span.name for span in prof.spans]
    ['full', 'full', 'add', 'ProfileStep#0']
    """

    def __init__(self, *, targets: Iterable[ProfilerTarget] | None = None, scheduler: Any = None,
                 on_trace_ready: Callable[[Profiler], None] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, timer_only: bool = False, emit_nvtx: bool = False,
                 custom_device_types: Sequence[str] = (), with_flops: bool = False):
        self.targets = set(targets or [ProfilerTarget.CPU])
        self.scheduler, self.timer_only = scheduler_of(scheduler), timer_only
        self.on_trace_ready = on_trace_ready or chrome.export_chrome_tracing("./profiler_log/")
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.step_num, self.current_state = 0, ProfilerState.CLOSED
        #: the last complete trace
        self.spans: list[Span] = []
        self._timer = Timer()
        self._layer: Recording | None = None
        self._switch: using | None = None
        self._step_start = 0.0

    # -------------------------------------------------------------------------------------------------- recording
    def start(self) -> None:
        """The first step begins."""
        self._timer.begin()
        self._enter(self.scheduler(self.step_num))

    def step(self, num_samples: int | None = None) -> None:
        """A step ends, and the next one begins.   num_samples: how many went through in it."""
        self._timer.step(num_samples)
        self._leave()
        self.step_num += 1
        self._enter(self.scheduler(self.step_num))

    def stop(self) -> None:
        """The last step ends here; what has been recorded is handed over."""
        begun = self._layer is not None and bool(self._layer.spans) and self.current_state in RECORDS
        if begun:
            self._hand_over()
        self._off()
        self.current_state = ProfilerState.CLOSED

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _enter(self, state: ProfilerState) -> None:
        before, self.current_state = self.current_state, state
        if self.timer_only:
            return
        if state is ProfilerState.CLOSED:
            self._off()
        elif self._layer is None:
            self._layer = Recording(current().events, self.record_shapes, self.profile_memory)
            self._switch = using(events=self._layer)
            self._switch.__enter__()
        elif before is ProfilerState.READY and state in RECORDS:
            self._layer.spans.clear()           # that was to get warm
        self._step_start = time.perf_counter()

    def _leave(self) -> None:
        if self._layer is None:
            return
        if self.current_state in RECORDS:
            now = time.perf_counter()
            self._layer.spans.append(Span(f"ProfileStep#{self.step_num}", TracerEventType.ProfileStep,
                                          self._step_start, now - self._step_start, threading.get_ident()))
        if self.current_state is ProfilerState.RECORD_AND_RETURN:
            self._hand_over()

    def _hand_over(self) -> None:
        assert self._layer is not None
        self.spans = list(self._layer.spans)
        self._layer.spans.clear()
        with using(events=self._layer.outer):   # what the callback computes is not recorded
            self.on_trace_ready(self)

    def _off(self) -> None:
        if self._switch is not None:
            self._switch.__exit__(None, None, None)
        self._layer = self._switch = None

    # ---------------------------------------------------------------------------------------------------- results
    def step_info(self, unit: str | None = None) -> str:
        """The mean time of a step since the last call, and how many samples (or `unit`) went through in a second."""
        return self._timer.info(unit)

    def export(self, path: str = "", format: str = "json") -> None:
        """Write the last complete trace for chrome://tracing.

        Raises: ValueError for another format than "json", or without a path.
        """
        if format != "json" or not path:
            raise ValueError(f"export: expected a path, and format 'json', got {path!r} and {format!r}")
        chrome.write(Path(path), self.spans)

    def summary(self, sorted_by: SortedKeys = SortedKeys.CPUTotal, op_detail: bool = True, thread_sep: bool = False,
                time_unit: str = "ms", views: Any = None) -> None:
        """Print the last complete trace as tables: by kind, by operator, by the spans that were named, by memory.

        views: one or several of SummaryView; all unless given.  op_detail, thread_sep: accepted, without effect.
        Raises: ValueError for an unknown time_unit.
        """
        print(tables.summary(self.spans, sorted_by, time_unit, views))
