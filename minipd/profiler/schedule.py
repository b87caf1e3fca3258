"""When a profiler records: a state for each step."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

__all__ = ["ProfilerState", "ProfilerTarget", "make_scheduler"]


class ProfilerState(enum.Enum):
    """What a profiler does in a step."""

    CLOSED = 0              # nothing
    READY = 1               # it records, and forgets: the first records are slower than the others
    RECORD = 2
    RECORD_AND_RETURN = 3   # it records, and hands over what it has at the end of the step


class ProfilerTarget(enum.Enum):
    """Which devices to look at; there is a CPU here."""

    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM_DEVICE = 3


Scheduler = Callable[[int], ProfilerState]


def make_scheduler(*, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0) -> Scheduler:
    """A schedule by step numbers: `skip_first` steps closed; then `closed`, `ready` and `record` steps, over and over,
    or `repeat` times if that is positive; closed after that.

    Raises: ValueError for numbers that are negative, or nothing to record.

    >>> schedule = make_scheduler(closed=1, ready=1, record=2, repeat=1)
    >>> [schedule(step).name for step in range(5)]
    ['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']
    """
    if min(closed, ready, repeat, skip_first) < 0 or record < 1:
        raise ValueError(f"make_scheduler: expected closed, ready, repeat and skip_first >= 0 and record >= 1, got "
                         f"closed={closed}, ready={ready}, record={record}, repeat={repeat}, skip_first={skip_first}")
    length = closed + ready + record

    def state(step: int) -> ProfilerState:
        if step < 0:
            raise ValueError(f"expected a step >= 0, got {step}")
        turn, at = divmod(step - skip_first, length)
        if turn < 0 or repeat and turn >= repeat or at < closed:
            return ProfilerState.CLOSED
        if at < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD_AND_RETURN if at == length - 1 else ProfilerState.RECORD
    return state


def scheduler_of(given: Any) -> Scheduler:
    """What a profiler's `scheduler` stands for: None (always), (first, last) steps, or a function.

    Raises: TypeError or ValueError for something else.
    """
    if given is None:
        return lambda step: ProfilerState.RECORD
    if callable(given):
        return given
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"Profiler: expected scheduler to be a function of the step, or (first step, step after the "
                        f"last one), got {given!r}")
    first, end = given
    if not 0 <= first < end:
        raise ValueError(f"Profiler: expected a scheduler (first, end) with 0 <= first < end, got {given}")
    ready = min(first, 1)
    return make_scheduler(closed=first - ready, ready=ready, record=end - first, repeat=1)
