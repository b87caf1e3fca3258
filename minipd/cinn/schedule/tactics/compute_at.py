"""ComputeAt: the blocks of a nest into one, block by block, as deep as they have loops in common."""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.errors import ScheduleError
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group, Key

__all__ = ["ComputeAt"]


class ComputeAt:
    """Each block goes to the end of the loops that it shares with the one before it.  Where that is not legal, it keeps
    a nest of its own."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for order in group.order:
            open_: list[tuple[Key, str]] = []           # the loops around the block before
            for name in order:
                path = group.paths[name]
                depth = 0
                while depth < min(len(open_), len(path)) and open_[depth][0] == path[depth][0]:
                    depth += 1
                if depth:
                    try:
                        s.simple_compute_at(name, open_[depth - 1][1])
                        path = open_[:depth] + path[depth:]
                    except ScheduleError:
                        pass
                group.paths[name] = open_ = path
