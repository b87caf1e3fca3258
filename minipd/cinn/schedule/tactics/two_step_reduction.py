"""TwoStepReduction: long reductions in parts, each by itself, which are then combined.

A sum over rows would keep the rows from running at once: they are cut into chunks, each with partial results of its
own.

    serial for i: dw[j] += dy[i, j]         parallel for i_chunk:
                                                for i_step: dw_rf[i_chunk, j] += dy[i_chunk * size + i_step, j]
                                            for i_chunk: dw[j] += dw_rf[i_chunk, j]

A long float32 sum has blocks, each of which adds up on its own: the error of a sum of n equal numbers then grows with
block + n / block instead of n.
"""

from __future__ import annotations

import numpy as np

from minipd.cinn.schedule.config import ScheduleConfig
from minipd.cinn.schedule.ir_schedule import IRSchedule
from minipd.cinn.schedule.tactics.base import Group, Key, axis_of
from minipd.cinn.schedule.tactics.group import INIT, number

__all__ = ["TwoStepReduction"]

FLOAT32 = np.dtype(np.float32)


class TwoStepReduction:
    """The number of chunks and blocks depends on extents alone, so that results do not depend on how many threads there
    are."""

    def apply(self, s: IRSchedule, group: Group, config: ScheduleConfig) -> None:
        for n in range(len(group.order)):
            if group.worth_threads(n, config):
                self._chunk(s, group, n, config)
            self._blocks(s, group, n, config)

    # --------------------------------------------------------------------------------------------------- chunks
    def _chunk(self, s: IRSchedule, group: Group, n: int, config: ScheduleConfig) -> None:
        """Cut the rows of a nest, if something folds them."""
        blocks, nest = group.arrangement.blocks, group.arrangement.nests[n]
        top = nest.rows[0]
        over = [name for name in nest.passes if top in blocks[name].folded]
        if not over:
            return
        known = number(blocks[over[0]].extents[top])
        flat = all(len(group.paths[name]) == 1 for name in nest.passes)
        if not flat and known is not None and known <= config.least_rows:
            return
        numbers = ((config.flat_chunks, config.least_elements) if flat else
                   (config.chunks, config.least_rows, config.most_rows))
        key: Key = ("rows", top)
        for name in group.order[n]:
            if key in group.keys(name):
                group.split(name, key, ("chunk", "step"), s.split_evenly(group.loop(name, key), *numbers))
        for name in over:
            part = group.rfactor(s, name, (*key, "chunk"))
            order = group.order[n]
            order[order.index(name)] = part
            order[order.index(name + INIT)] = part + INIT
            if not flat and not blocks[name].kept and blocks[name].dtype == FLOAT32:
                self._combine_in_blocks(s, group, name, config)

    def _combine_in_blocks(self, s: IRSchedule, group: Group, name: str, config: ScheduleConfig) -> None:
        """What combines an unknown number of partial sums is a long sum too."""
        (key, loop), = group.paths[name]
        group.split(name, key, ("block", "lane"), s.split(loop, [-1, config.block]))
        part = group.rfactor(s, name, (*key, "block"))
        group.order.append([part + INIT, part, name])

    # --------------------------------------------------------------------------------------------------- blocks
    def _blocks(self, s: IRSchedule, group: Group, n: int, config: ScheduleConfig) -> None:
        """Cut the innermost loops of all passes with a long sum, if these are not known to be short."""
        by_path: dict[tuple[Key, ...], list[str]] = {}
        for name in group.order[n]:
            by_path.setdefault(tuple(group.keys(name)), []).append(name)
        for path, names in by_path.items():
            if any(len(other) > len(path) and other[:len(path)] == path for other in by_path):
                continue                        # a loop over rows, not over elements
            sums = [name for name in names if group.folds(name, path[-1])] if path else []
            if not any(_is_long(group, name, path[-1], config) for name in sums):
                continue
            for name in names:
                group.split(name, path[-1], ("block", "lane"),
                            s.split(group.loop(name, path[-1]), [-1, config.block]))
            order = group.order[n]
            first, last = order.index(names[0]), order.index(names[-1]) + 1
            before: list[str] = []
            after: list[str] = []
            inside = order[first:last]
            for name in sums:
                part = name
                for key in [k for k in group.keys(name)[:-1] if group.folds(name, k)]:
                    after.insert(0, part)
                    part = group.rfactor(s, part, key)
                    before.append(part + INIT)
                inside[inside.index(name)] = part
            deep = {name: len(group.paths[name]) for name in (*before, *after)}
            before.sort(key=deep.__getitem__)           # what belongs to an outer loop before it begins, or after it
            after.sort(key=deep.__getitem__, reverse=True)
            order[first:last] = [*before, *inside, *after]


def _is_long(group: Group, block: str, key: Key, config: ScheduleConfig) -> bool:
    """Whether the loop may add up many float32."""
    info = group.info(block)
    known = number(info.extents[axis_of(key)])
    if known is None and axis_of(key) in group.arrangement.row:
        known = config.row_at_most
    return info.op == "add" and info.dtype == FLOAT32 and (known is None or known > config.block_from)
