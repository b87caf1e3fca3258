"""Running a reshard plan: each step is at most one collective (or a local slice) on what the rank holds.

The extents of everybody's chunks follow from the split rule, so nobody has to be asked for a size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.dist.reshard.plan import plan
from minipd.dist.sharding import local_window
from minipd.framework.row import ROWS

__all__: list[str] = []

IDENTITY = {"sum": 0.0, "prod": 1.0}

#: the reduction that a communicator does for a Partial; of bools, any is the maximum and all the minimum
REDUCTION = {"avg": "sum", "any": "max", "all": "min"}


def run_plan(x: Any, placements: tuple[Placement, ...], run: Callable, rank: int) -> Any:
    """The local payload of the DistValue `x` under `placements`; `run` is the interpreter below."""
    local, now = x.local, list(x.placements)
    for step in plan(x.placements, placements, x.mesh, len(x.shape)):
        after = now.copy()
        after[step.axis] = step.dst
        local = run_step(_Step(x, step.axis, tuple(now), tuple(after), run, rank), local)
        now = after
    return local


class _Step:
    """One step on one mesh axis, seen from one rank: who takes part, and how large everybody's chunk is."""

    def __init__(self, x: Any, axis: int, before: tuple, after: tuple, run: Callable, rank: int):
        self.x, self.axis, self.before, self.after, self.run, self.rank = x, axis, before, after, run, rank
        self.src, self.dst = before[axis], after[axis]
        self.group = x.mesh.group(rank, axis)
        self.index = x.mesh.coordinate(rank)[axis]

    def sizes(self, placements: tuple, dim: int) -> tuple:
        """The members' extents along `dim`."""
        return tuple(local_window(self.x.shape, self.x.mesh, placements, r)[0][dim] for r in self.group)

    def call(self, name: str, local: Any, **attrs: Any) -> Any:
        return self.run(ROWS[name], [local], attrs)


def run_step(s: _Step, local: Any) -> Any:
    """What the rank holds after one step, made of `local`, what it held before.

    At most one collective runs, the one that `Step.action` names (see the table in plan.py); none if the axis has one
    rank.
    """
    src, dst = s.src, s.dst
    if len(s.group) == 1:
        return local                                    # on an axis of one rank all placements say the same
    if isinstance(src, Partial):
        return resolve(s, local, src, dst)
    if isinstance(src, Shard) and isinstance(dst, Replicate):
        # everybody's chunks make the whole: without it each rank would compute with its own part only
        return s.call("all_gather", local, group=s.group, axis=src.dim, sizes=s.sizes(s.before, src.dim))
    if isinstance(src, Shard) and isinstance(dst, Shard):
        return s.call("all_to_all", local, group=s.group, index=s.index, split_axis=dst.dim, concat_axis=src.dim,
                      split_sizes=s.sizes(s.after, dst.dim), concat_sizes=s.sizes(s.before, src.dim))
    if isinstance(src, Replicate) and isinstance(dst, Shard):
        shape, offsets = local_window(s.x.shape, s.x.mesh, s.after, s.rank)
        start = offsets[dst.dim] - local_window(s.x.shape, s.x.mesh, s.before, s.rank)[1][dst.dim]
        return s.call("slice", local, axes=(dst.dim,), starts=(start,), ends=(start + shape[dst.dim],))
    if isinstance(src, Replicate) and isinstance(dst, Partial):
        if dst.idempotent or s.index == 0:
            return local                                # one rank keeps the value, the others add nothing to it
        return s.call("full_like", local, value=IDENTITY[dst.op])
    raise NotImplementedError(f"reshard of {s.x!r}: no step from {src!r} to {dst!r}")


def resolve(s: _Step, local: Any, src: Partial, dst: Placement) -> Any:
    """A Partial becomes whole (all_reduce), or each rank's chunk of the whole (reduce_scatter, half the traffic)."""
    op = REDUCTION.get(src.op, src.op)
    if isinstance(dst, Shard):
        local = s.call("reduce_scatter", local, group=s.group, index=s.index, axis=dst.dim,
                       sizes=s.sizes(s.after, dst.dim), op=op)
    else:
        local = s.call("all_reduce", local, group=s.group, op=op)
    return s.call("scale", local, scale=1.0 / len(s.group)) if src.op == "avg" else local
