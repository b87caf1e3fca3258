"""AlignIterSpace: the loops of every block in the order of its nest: rows outside, what lies in a row inside.

    mean over n, h of x[n, c, h]:  for n: for c: for h        ->        for c: for n: for h
"""

from __future__ import annotations

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.arrangement import Nest
from minipd.cinn.schedule.tactics.base import Group, Key
from minipd.cinn.schedule.tactics.group import INIT

__all__ = ["AlignIterSpace"]


class AlignIterSpace:
    """Reorder loops where rows are not outside; find out what every loop is, and in which order blocks are to run."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for nest in group.arrangement.nests:
            for name, number in nest.passes.items():
                info = group.arrangement.blocks[name]
                rows = [x for x in nest.rows if x in info.axes]
                inner = sorted(x for x in info.axes if x not in nest.rows)
                self._align(s, group, name, rows, inner, (number, tuple(inner)))
                if info.folded:
                    outer = rows[:next((n for n, x in enumerate(rows) if x in info.folded), len(rows))]
                    self._align(s, group, name + INIT, outer, [x for x in (*rows[len(outer):], *inner)
                                                               if x not in info.folded], (name + INIT,))
            group.order.append(self._order(group, nest))

    def _align(self, s: IRSchedule, group: Group, name: str, rows: list[str], inner: list[str], kind: Key) -> None:
        axes = group.arrangement.blocks[name].axes
        loops = dict(zip(axes, s.get_loops(name), strict=True))
        if (*rows, *inner) != axes:
            s.reorder([loops[x] for x in (*rows, *inner)])
        group.paths[name] = [(("rows", x), loops[x]) for x in rows] + [((*kind, x), loops[x]) for x in inner]

    def _order(self, group: Group, nest: Nest) -> list[str]:
        """Pass by pass, before each the starts of its reductions, behind it what is done once for a row; at the end of
        a pass, what writes over a kept value.  Reductions over rows start before everything else."""
        a = group.arrangement
        over = {kept.output for kept in a.kept.values()}
        late = [name for name in nest.passes if a.blocks[name].folded and a.finished_late(name)]
        order = [name + INIT for name in late]
        for number in sorted(set(nest.passes.values())):
            own = [name for name in nest.passes if nest.passes[name] == number]
            order += [name + INIT for name in own if a.blocks[name].folded and name not in late]
            paths = list(dict.fromkeys(tuple(group.keys(name)) for name in own))
            for path in sorted(paths, key=lambda path: bool(path) and path[-1][0] == "rows"):
                order += sorted((name for name in own if tuple(group.keys(name)) == path), key=over.__contains__)
        return order
