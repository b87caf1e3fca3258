"""Vectorize: innermost loops in SIMD lanes."""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group

__all__ = ["Vectorize"]


class Vectorize:
    """Every loop without one inside that is still serial, if its iterations meet in reductions only."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        innermost = dict.fromkeys(loops[-1] for block in s.get_all_blocks() if (loops := s.get_loops(block)))
        around = {loop for block in s.get_all_blocks() for loop in s.get_loops(block)[:-1]}
        for loop in innermost:
            if loop in around:
                continue
            try:
                s.vectorize(loop)
            except ScheduleError:
                pass
