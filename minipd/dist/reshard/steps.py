"""The steps of a reshard on one mesh, and which of them keep the value.

A step changes one axis, by one collective or by none:

    R -> S   slice                 P -> R   all_reduce          R -> P   keep: one rank keeps the value, the others
    S -> R   all_gather            P -> S   reduce_scatter                add nothing to it
    S -> S'  all_to_all                                         S -> P   pad: each rank adds nothing but its chunk

or it is an `Exchange`: every rank gets the blocks that it will hold from ranks that have them, message by message.

Not every step is right everywhere.  Where several axes split one dimension, they do so one after the other (see
`sharding.py`), and a rank's chunk along the one that splits last is a part of its chunk along the others.  So only the
axis that splits a dimension *last* can be gathered, and an axis that starts to split a dimension splits it last: else
rows are permuted, and no shape would tell.  Likewise a sum of maxima is no maximum of sums: with Partials of two kinds,
the inner axis is reduced first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from minipd.dist.placements import Partial, Placement, Replicate, Shard, canonical
from minipd.dist.sharding import split_axes

__all__: list[str] = []

Placements = tuple[Placement, ...]


class Step(NamedTuple):
    """One mesh axis goes from placement `src` to `dst`.

    >>> Step(1, Partial(), Shard(0)).action
    'reduce_scatter'
    """

    axis: int
    src: Placement
    dst: Placement

    @property
    def action(self) -> str:
        """The collective, or what is done without one: "slice", "keep" or "pad"."""
        return _ACTIONS[type(self.src), type(self.dst)]

    def applied(self, before: Placements) -> Placements:
        """The placements after the step.  An axis that starts to split a dimension splits it last.

        >>> Step(0, Replicate(), Shard(0)).applied((Replicate(), Shard(0)))
        (Shard(dim=0, shard_order=1), Shard(dim=0))
        """
        after, dst = list(before), self.dst
        if isinstance(dst, Shard):
            for number, axis in enumerate(split_axes(before, dst.dim)):
                after[axis] = after[axis].with_(shard_order=number)             # type: ignore[attr-defined]
            dst = dst.with_(shard_order=len(split_axes(before, dst.dim)))
        after[self.axis] = dst
        return canonical(after)


class Exchange(NamedTuple):
    """Every rank goes from the placements `src` to `dst` at once, by messages from rank to rank."""

    src: Placements
    dst: Placements

    @property
    def action(self) -> str:
        return "exchange"

    def applied(self, before: Placements) -> Placements:
        """The placements after it."""
        return self.dst


AnyStep = Step | Exchange

_ACTIONS: dict[tuple[type, type], str] = {
    (Replicate, Shard): "slice", (Replicate, Partial): "keep",
    (Shard, Replicate): "all_gather", (Shard, Shard): "all_to_all", (Shard, Partial): "pad",
    (Partial, Replicate): "all_reduce", (Partial, Shard): "reduce_scatter",
}
COLLECTIVES = ("all_gather", "all_to_all", "all_reduce", "reduce_scatter")


def right_steps(now: Placements, goal: Placements, sizes: Sequence[int], ndim: int, largest: int) -> Iterator[Step]:
    """The steps that may come next on the way to `goal`: each keeps the value, and brings an axis to where it shall be
    or out of the way.   sizes: of the mesh's axes.  largest: the dimension with most elements."""
    splits = [_Splitting(now, goal, dim) for dim in range(ndim)]
    for axis, (p, q) in enumerate(zip(now, goal, strict=True)):
        if sizes[axis] == 1:
            continue
        if isinstance(p, Replicate):
            if isinstance(q, Shard) and splits[q.dim].may_start(axis):
                yield Step(axis, p, q.with_(shard_order=0))
            elif isinstance(q, Partial) and (q.idempotent or _may_start(q, now[axis + 1:])):
                yield Step(axis, p, q)
        elif isinstance(p, Shard):
            if splits[p.dim].done or splits[p.dim].now[-1] != axis:
                continue
            yield Step(axis, p, Replicate())
            if isinstance(q, Shard) and q.dim != p.dim and p.factor == q.factor == 1 and splits[q.dim].may_start(axis):
                yield Step(axis, p, q.with_(shard_order=0))
            elif isinstance(q, Partial) and q.op != "avg" and _may_start(q, now[axis + 1:]):
                yield Step(axis, p, q)
        elif isinstance(p, Partial) and not any(_reduced_first(inner, p) for inner in now[axis + 1:]):
            yield Step(axis, p, Replicate())
            if p is q:
                continue
            if isinstance(q, Shard) and splits[q.dim].may_start(axis):
                yield Step(axis, p, q.with_(shard_order=0))
            # where the value is wanted whole, chunks of it may do for a while: less goes over the other axes
            if ndim and q is not Shard(largest):
                yield Step(axis, p, Shard(largest))


class _Splitting:
    """How one dimension is split now, and how it shall be: the axes, from the first to the last."""

    def __init__(self, now: Placements, goal: Placements, dim: int):
        self.now, self.wanted = split_axes(now, dim), split_axes(goal, dim)
        #: what there is, is the beginning of what is wanted
        self.done = self.now == self.wanted[:len(self.now)] and all(
            now[axis].factor == goal[axis].factor for axis in self.now)         # type: ignore[attr-defined]

    def may_start(self, axis: int) -> bool:
        """Whether `axis` is the next that shall split the dimension."""
        return self.done and self.wanted[len(self.now):len(self.now) + 1] == (axis,)


def _reduced_first(inner: Placement, outer: Partial) -> bool:
    """Whether an axis further in, placed as `inner`, must be reduced before a Partial that is `outer`."""
    return isinstance(inner, Partial) and inner is not outer and not {inner.op, outer.op} <= {"sum", "avg"}


def _may_start(p: Partial, inner: Sequence[Placement]) -> bool:
    """Whether ranks may hold what adds nothing to a `p`, axes further in being placed as `inner`: there it is reduced
    first, and must still be nothing after that (a sum of ones is no one, a product of infinities may be another)."""
    return not any(isinstance(q, Partial) and q is not p and not (
        q.op in ("max", "min", "avg", "any", "all") or p.op == "sum" and q.op != "prod") for q in inner)
