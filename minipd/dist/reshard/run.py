"""Running a reshard plan: each step is at most one collective (or a local slice) on what the rank holds.

The extents of everybody's chunks follow from the split rule, so nobody has to be asked for a size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.dist.reshard.across import adds_nothing, exchanged
from minipd.dist.reshard.between import Between
from minipd.dist.reshard.blocks import give, take
from minipd.dist.reshard.plan import Plan, plan
from minipd.dist.reshard.steps import Exchange
from minipd.dist.sharding import local_blocks, local_shape, local_window
from minipd.framework.row import ROWS

__all__: list[str] = []

IDENTITY = {"sum": 0.0, "prod": 1.0}

#: the reduction that a communicator does for a Partial; of bools, any is the maximum and all the minimum
REDUCTION = {"avg": "sum", "any": "max", "all": "min"}


def run_plan(x: Any, placements: tuple[Placement, ...], run: Callable, rank: int) -> Any:
    """The local payload of the DistValue `x` under `placements`; `run` is the interpreter below."""
    return run_steps(x, x.local, plan(x.placements, placements, x.mesh, len(x.shape), x.shape), run, rank)


def run_steps(x: Any, local: Any, steps: Plan, run: Callable, rank: int) -> Any:
    """What the rank holds after the steps, made of `local`.   x: says the global shape, and the dtype."""
    for step, before, after in steps.stages:
        if isinstance(step, Exchange):
            held, wanted = (local_blocks(x.shape, steps.mesh, p, rank) for p in (before, after))
            messages = exchanged(tuple(x.shape), steps.mesh, before, after)
            give(local, held, messages, run, rank)
            local = take(local, held, wanted, local_shape(x.shape, steps.mesh, after, rank), x.dtype, messages, run,
                         rank)
            continue
        s = _Step(x, steps.mesh, step.axis, before, after, run, rank)
        local = run_parted(s, local) if steps.parted or step.action == "pad" else run_step(s, local)
    return local


def run_between(x: Any, mesh: ProcessMesh, between: Between, run: Callable, rank: int) -> Any:
    """What the rank holds in the end of a reshard of the DistValue `x` to another mesh; None if it is none of it."""
    shape, local, held = tuple(x.shape), None, []
    here, there = between.here, between.there
    if x.mesh.contains(rank):
        local = run_steps(x, x.local, here, run, rank)
        leaving = here.dst
        held = local_blocks(shape, x.mesh, leaving, rank)
    for b in between.broadcasts:
        if rank in b.group:
            given = local if rank == b.root else run(ROWS["full"], [], {"shape": shape, "value": 0, "dtype": x.dtype})
            local = run(ROWS["broadcast"], [given], {"root": b.root, "group": b.group})
    give(local, held, between.messages, run, rank)
    if not mesh.contains(rank):
        return None
    if not between.broadcasts:
        own = local_shape(shape, mesh, there.src, rank)
        if adds_nothing(mesh, there.src, rank) and all(m.dst != rank for m in between.messages):
            kind = next(p for p in there.src if isinstance(p, Partial))
            local = run(ROWS["full"], [], {"shape": own, "value": nothing(kind.op, x.dtype), "dtype": x.dtype})
        else:
            local = take(local, held, local_blocks(shape, mesh, there.src, rank), own, x.dtype, between.messages, run,
                         rank)
    return run_steps(x, local, there, run, rank)


def nothing(op: str, dtype: np.dtype) -> Any:
    """What adds nothing in a reduction: x + 0, x * 1, the maximum of x and the smallest number there is.

    >>> nothing("sum", np.dtype("float32")), nothing("max", np.dtype("int8")), nothing("any", np.dtype("bool"))
    (0.0, -128, False)
    """
    if op in IDENTITY:
        return IDENTITY[op]
    largest = op in ("min", "all")                      # of which the minimum with x is x
    if dtype == np.bool_:
        return largest
    if dtype.kind in "iu":
        return int(np.iinfo(dtype).max if largest else np.iinfo(dtype).min)
    return float("inf") if largest else float("-inf")


class _Step:
    """One step on one mesh axis, seen from one rank: who takes part, and how large everybody's chunk is."""

    def __init__(self, x: Any, mesh: ProcessMesh, axis: int, before: tuple, after: tuple, run: Callable, rank: int):
        self.x, self.axis, self.before, self.after, self.run, self.rank = x, axis, before, after, run, rank
        self.mesh, self.src, self.dst = mesh, before[axis], after[axis]
        self.group = mesh.group(rank, axis)
        self.index = mesh.coordinate(rank)[axis]

    def sizes(self, placements: tuple, dim: int) -> tuple:
        """The members' extents along `dim`."""
        return tuple(local_shape(self.x.shape, self.mesh, placements, r)[dim] for r in self.group)

    def call(self, name: str, local: Any, **attrs: Any) -> Any:
        return self.run(ROWS[name], [local], attrs)


def run_step(s: _Step, local: Any) -> Any:
    """What the rank holds after one step, made of `local`, what it held before.

    At most one collective runs, the one that `Step.action` names (see the table in steps.py); none if the axis has one
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
        shape, offsets = local_window(s.x.shape, s.mesh, s.after, s.rank)
        start = offsets[dst.dim] - local_window(s.x.shape, s.mesh, s.before, s.rank)[1][dst.dim]
        return s.call("slice", local, axes=(dst.dim,), starts=(start,), ends=(start + shape[dst.dim],))
    if isinstance(src, Replicate) and isinstance(dst, Partial):
        if dst.idempotent or s.index == 0:
            return local                                # one rank keeps the value, the others add nothing to it
        return s.call("full_like", local, value=IDENTITY[dst.op])
    raise NotImplementedError(f"reshard of {s.x!r}: no step from {src!r} to {dst!r}")


def resolve(s: _Step, local: Any, src: Partial, dst: Placement) -> Any:
    """A Partial becomes whole (all_reduce), or each rank's chunk of the whole (reduce_scatter, half the traffic)."""
    if isinstance(dst, Shard):
        return reduced(s, local, src, "reduce_scatter", index=s.index, axis=dst.dim, sizes=s.sizes(s.after, dst.dim))
    return reduced(s, local, src, "all_reduce")


def reduced(s: _Step, local: Any, src: Partial, name: str, **attrs: Any) -> Any:
    """The collective that reduces what the ranks hold.  An average is a sum, divided; of whole numbers it is rounded
    down, and added up in 64 bits."""
    dtype = local.dtype
    whole = src.op == "avg" and dtype.kind in "iu"
    if whole:
        local = s.call("cast", local, dtype=np.dtype(np.int64))
    local = s.call(name, local, group=s.group, op=REDUCTION.get(src.op, src.op), **attrs)
    if whole:
        ranks = s.run(ROWS["full"], [], {"shape": (), "value": len(s.group), "dtype": np.dtype(np.int64)})
        return s.call("cast", s.run(ROWS["floor_divide"], [local, ranks], {}), dtype=dtype)
    return s.call("scale", local, scale=1.0 / len(s.group)) if src.op == "avg" else local


def run_parted(s: _Step, local: Any) -> Any:
    """A step where a split factor parts a dimension, or one that pads.

    With a factor of k, a local extent of k * n is seen as k times n: then the step is the plain one along the n.
    """
    src, dst = s.src, s.dst
    if isinstance(src, Shard) and isinstance(dst, Partial):
        return padded(s, local, src, dst)
    if isinstance(src, Shard) and isinstance(dst, Shard):
        return s.call("all_to_all", local, group=s.group, index=s.index, split_axis=dst.dim, concat_axis=src.dim,
                      split_sizes=s.sizes(s.after, dst.dim), concat_sizes=s.sizes(s.before, src.dim))
    if isinstance(src, Shard):
        sizes = tuple(n // src.factor for n in s.sizes(s.before, src.dim))
        local = s.call("all_gather", _split(s, local, src), group=s.group, axis=src.dim + (src.factor > 1), sizes=sizes)
        return _merged(s, local, src)
    if not isinstance(dst, Shard):
        return run_step(s, local)
    sizes, axis = tuple(n // dst.factor for n in s.sizes(s.after, dst.dim)), dst.dim + (dst.factor > 1)
    local = _split(s, local, dst)
    if isinstance(src, Partial):
        return _merged(s, reduced(s, local, src, "reduce_scatter", index=s.index, axis=axis, sizes=sizes), dst)
    start = sum(sizes[:s.index])
    local = s.call("slice", local, axes=(axis,), starts=(start,), ends=(start + sizes[s.index],))
    return _merged(s, local, dst)


def padded(s: _Step, local: Any, src: Shard, dst: Partial) -> Any:
    """A rank's chunk among what adds nothing: the ranks' chunks lie at different places, so nothing has to be sent."""
    sizes = tuple(n // src.factor for n in s.sizes(s.before, src.dim))
    local, axis = _split(s, local, src), src.dim + (src.factor > 1)
    around = []
    for others in (sizes[:s.index], sizes[s.index + 1:]):
        shape = (*local.shape[:axis], sum(others), *local.shape[axis + 1:])
        around.append(s.run(ROWS["full"], [], {"shape": shape, "value": nothing(dst.op, local.dtype),
                                               "dtype": local.dtype}))
    return _merged(s, s.run(ROWS["concat"], [around[0], local, around[1]], {"axis": axis}), src)


def _split(s: _Step, local: Any, p: Shard) -> Any:
    """A dimension of k * n elements as two, of k and of n."""
    if p.factor == 1:
        return local
    n = local.shape[p.dim] // p.factor
    return s.call("reshape", local, shape=(*local.shape[:p.dim], p.factor, n, *local.shape[p.dim + 1:]))


def _merged(s: _Step, local: Any, p: Shard) -> Any:
    """The way back."""
    if p.factor == 1:
        return local
    n = local.shape[p.dim] * local.shape[p.dim + 1]
    return s.call("reshape", local, shape=(*local.shape[:p.dim], n, *local.shape[p.dim + 2:]))
