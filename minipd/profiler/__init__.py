"""Profiling (Paddle's `paddle.profiler`): which operators ran, for how long, in which steps."""

from minipd.profiler.chrome import export_chrome_tracing, load_profiler_result
from minipd.profiler.profiler import Profiler
from minipd.profiler.recording import RecordEvent, TracerEventType
from minipd.profiler.schedule import ProfilerState, ProfilerTarget, make_scheduler
from minipd.profiler.tables import SortedKeys, SummaryView

__all__ = ["Profiler", "ProfilerState", "ProfilerTarget", "RecordEvent", "SortedKeys", "SummaryView",
           "TracerEventType", "export_chrome_tracing", "load_profiler_result", "make_scheduler"]
