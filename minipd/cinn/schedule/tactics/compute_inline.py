"""ComputeInline: element-wise blocks are computed where they are read, but for those that are kept."""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group

__all__ = ["ComputeInline"]


class ComputeInline:
    """From the first block on, so that formulas arrive whole where they are needed."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for name, info in group.arrangement.blocks.items():
            if not info.terminal and name not in group.arrangement.kept:
                s.compute_inline(name)
