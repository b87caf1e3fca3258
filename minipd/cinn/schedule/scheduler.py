"""From a function in block form, as lowering writes it, to one that is scheduled: tactics in a fixed order.

    AlignIterSpace      rows outside, what lies in a row inside
    ComputeInline       element-wise blocks go into who reads them, but for expensive ones that several passes need
    TwoStepReduction    sums over rows in chunks, long float32 sums in blocks
    Tile                reductions along another axis than the one that is contiguous, for some neighbours at once
    ComputeAt           the blocks of each nest into one
    ArrangeStorage      kept values into the rows of outputs
    Bind                outermost loops on several threads
    Vectorize           innermost loops in lanes

They choose by rules of thumb, whose numbers are a `ScheduleConfig`; it can also make a choice itself.  All they do,
they do by primitives, so that `trace` says what was done; a trace that was written down is replayed instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minipd.cinn.ir.ast import Function
from minipd.cinn.schedule.config import TACTICS, BucketInfo, ScheduleConfig, config_for
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics import ALL
from minipd.cinn.schedule.tactics.arrangement import Arrangement, arrange
from minipd.cinn.schedule.tactics.base import Group
from minipd.cinn.schedule.tactics.group import group_of
from minipd.cinn.schedule.trace import Trace

__all__ = ["Scheduled", "arrangement_of", "schedule"]


@dataclass(frozen=True)
class Scheduled:
    """A function, scheduled.

    Attributes:
        function: still in block form.
        trace: the primitives that made it.
        config: what the tactics went by; None if a trace was replayed.
        tactics: (name, number of its first step, of the step behind its last).
    """

    function: Function
    trace: Trace
    config: ScheduleConfig | None = None
    tactics: tuple[tuple[str, int, int], ...] = field(default=())


def schedule(function: Function, config: ScheduleConfig | None = None, trace: Trace | None = None,
             rules: Mapping[BucketInfo, dict[str, Any]] | None = None, bucket: BucketInfo | None = None) -> Scheduled:
    """Schedule a function that lowering has written.

    config: what the tactics go by; None takes that of the function's bucket (`config_for`, which gets `rules`).
    trace: replayed instead.
    bucket: the only sizes that are to be served.
    Raises: ScheduleError if the trace is not one of this function.
    """
    if trace is not None:
        replayed = trace.replay(function)
        return Scheduled(replayed.function, replayed.trace)
    config = config or config_for(arrangement_of(function, ScheduleConfig()).base_info, rules, bucket)
    s = IRSchedule(function)
    group = Group(arrangement_of(function, config))
    done: list[tuple[str, int, int]] = []
    for name in TACTICS:
        if name not in config.without:
            first = len(s.trace.steps)
            ALL[name]().apply(s, group, config)
            done.append((name, first, len(s.trace.steps)))
    return Scheduled(s.function, s.trace, config, tuple(done))


def arrangement_of(function: Function, config: ScheduleConfig) -> Arrangement:
    """Which nests the function is to have."""
    return arrange(group_of(function), {p.name: p.dtype for p in function.params if p.output}, config)
