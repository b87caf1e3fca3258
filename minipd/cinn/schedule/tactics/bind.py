"""Bind: which loops run on several threads."""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group

__all__ = ["Bind"]


class Bind:
    """The outermost loop of each nest that is worth it, if no iteration of it meets another."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for n, order in enumerate(group.order[:len(group.arrangement.nests)]):
            if not group.worth_threads(n, config):
                continue
            for loop in dict.fromkeys(group.paths[name][0][1] for name in order if group.paths[name]):
                try:
                    s.parallel(loop)
                except ScheduleError:
                    pass
