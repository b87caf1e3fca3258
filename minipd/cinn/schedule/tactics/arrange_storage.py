"""ArrangeStorage: values that are kept from one pass to the next in the row of an output."""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group

__all__ = ["ArrangeStorage"]


class ArrangeStorage:
    """Those kept elsewhere have an array of their own already, which becomes a row where one is enough (`optim`)."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for name, kept in group.arrangement.kept.items():
            if kept.output is not None:
                s.set_buffer(name, kept.output)
