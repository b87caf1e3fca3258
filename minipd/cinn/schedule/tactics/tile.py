"""Tile: reductions along another axis than the contiguous one, for some neighbours at once.

Row by row, each step of such a row would take one number of a cache line.  So a few rows that lie side by side are
taken together, and the loop over these goes inside:

    softmax over axis 0 of x[i, j]      for j:                          for j_tile:
                                            for i: max_0[j] ...             for i: for j_lane: max_0[j] ...
"""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group, Key

__all__ = ["Tile"]


class Tile:
    """For nests whose last axis in memory is one of the rows."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        a = group.arrangement
        for nest, order in zip(a.nests, group.order, strict=False):
            full = [a.blocks[name].axes for name in nest.passes if set(a.blocks[name].axes) > set(nest.rows)]
            last = nest.rows[-1] if nest.rows else None
            if not full or any(axes[-1] != last for axes in full):
                continue
            key: Key = ("rows", last)
            if all(key in group.keys(name) for name in order):
                for name in order:
                    self._tile(s, group, name, key, config)

    def _tile(self, s: IRSchedule, group: Group, name: str, key: Key, config: ScheduleConfig) -> None:
        """The rows of one tile go behind all other loops; there, they belong to the block's pass."""
        group.split(name, key, ("tile", "lane"), s.split(group.loop(name, key), [-1, config.tile]))
        path = group.paths[name]
        lane = next(x for x in path if x[0] == (*key, "lane"))
        others = [x for x in path if x != lane]
        if path[-1] != lane:
            s.reorder([loop for _, loop in (*others, lane)])
        inner = [k for k, _ in others if k[0] != "rows"]
        group.paths[name] = [*others, ((inner[-1] if inner else (name,), "lane"), lane[1])]
