"""The plan of a reshard from one mesh to another: steps there, what crosses, steps here.

What crosses is a message per block (see `across.py`), or, where many ranks want all of it, a broadcast.  It need not
cross as it stands, nor as it is wanted:

    P -> R    a sum is reduced first, to chunks: each rank sends its own, and the target gathers them
    S -> R    each rank sends its chunk to one rank only, and the target gathers: less goes between the meshes
    P -> P    the rank that keeps the value gets it, the others nothing

The cheapest is taken (see `cost.py`), between equally dear ones that whose busiest rank sends least.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Replicate, Shard, check_placements
from minipd.dist.reshard import cost
from minipd.dist.reshard.across import Message, like_to_like, plan_across
from minipd.dist.reshard.plan import Plan, plan, without_lone
from minipd.dist.reshard.steps import Placements, Step

__all__: list[str] = []


class Broadcast(NamedTuple):
    """Rank `root` of the source gives the whole value to the members of `group`, of which it is the first."""

    root: int
    group: tuple[int, ...]


class Between(NamedTuple):
    """A reshard between meshes.

    here: the steps on the source's mesh.  messages or broadcasts: what crosses then; of a mesh that overlaps the other,
    a rank gives itself what it has.  there: the steps on the target's mesh, of the ranks that have got it.
    """

    here: Plan
    messages: tuple[Message, ...]
    broadcasts: tuple[Broadcast, ...]
    there: Plan


Crossing = tuple[tuple[Message, ...], tuple[Broadcast, ...]]


@functools.lru_cache(maxsize=1024)
def plan_between(src_mesh: ProcessMesh, src: Placements, dst_mesh: ProcessMesh, dst: Placements,
                 shape: tuple[int, ...]) -> Between:
    """How a tensor of global `shape`, placed as `src` on one mesh, gets to `dst` on another: a part of it, one around
    it, one that overlaps it or shares no rank with it.

    Raises: ValueError for placements that do not fit their mesh or the tensor.

    >>> first, second = ProcessMesh([0, 1]), ProcessMesh([2, 3])
    >>> found = plan_between(first, (Shard(0),), second, (Replicate(),), (4, 6))
    >>> [(m.src, m.dst) for m in found.messages], [*found.there]
    ([(0, 2), (1, 3)], [Step(axis=0, src=Shard(dim=0), dst=Replicate())])
    """
    ndim = len(shape)
    start = without_lone(check_placements(src, src_mesh, ndim, "reshard from"), src_mesh)
    goal = without_lone(check_placements(dst, dst_mesh, ndim, "reshard to"), dst_mesh)
    found = [Between(plan(start, leaving, src_mesh, ndim, shape), *crossing,
                     plan(arriving, goal, dst_mesh, ndim, shape))
             for leaving, arriving, crossing in _ways(src_mesh, start, dst_mesh, goal, shape)]
    costs = [_cost(between, shape) for between in found]
    return min((b for b, dear in zip(found, costs, strict=True) if dear == min(costs)),
               key=lambda between: _load(between, shape))


def _cost(between: Between, shape: tuple[int, ...]) -> Any:
    """What the steps on both sides cost, and what crosses."""
    here, messages, broadcasts, there = between
    dear, _ = cost.of_messages(messages)
    dear += sum(cost.of_broadcast(math.prod(shape), len(b.group)) for b in broadcasts[:1])     # all of them at once
    return dear + sum(cost.of_step(step, now, p.mesh, shape)[0] for p in (here, there) for step, now, _ in p.stages)


def _load(between: Between, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """What the busiest rank sends, and what crosses, in elements; and how many steps there are."""
    here, messages, broadcasts, there = between
    elements = math.prod(shape)
    sent: Counter[int] = Counter()
    for steps in (here, there):
        for step, now, _ in steps.stages:
            for rank in steps.mesh.process_ids:
                sent[rank] += cost.sent(step, now, steps.mesh, shape, rank)
    crossing = sum(math.prod(m.shape) for m in messages if m.src != m.dst)
    for m in messages:
        sent[m.src] += math.prod(m.shape) * (m.src != m.dst)
    for b in broadcasts:
        sent[b.root] += elements * (len(b.group) - 1).bit_length()
        crossing += elements * (len(b.group) - 1)
    return max(sent.values(), default=0), crossing, len(here) + len(there)


def _ways(src_mesh: ProcessMesh, start: Placements, dst_mesh: ProcessMesh, goal: Placements,
          shape: tuple[int, ...]) -> Iterator[tuple[Placements, Placements, Crossing]]:
    """The placements that a value may leave with and arrive with, and what crosses then."""
    leaving, arriving = _leaving(start, goal, shape), _arriving(goal, start, shape)
    for before, after in itertools.product(leaving, arriving):
        yield before, after, (plan_across(shape, src_mesh, before, dst_mesh, after), ())
    if all(p.is_replicated() or p.is_partial() for p in goal):
        groups = _broadcasts(src_mesh, dst_mesh)
        if groups and len(groups[0].group) > 3:
            yield (Replicate(),) * src_mesh.ndim, (Replicate(),) * dst_mesh.ndim, ((), groups)
    if src_mesh.sizes == dst_mesh.sizes:
        for placements in dict.fromkeys((start, *leaving)):
            yield placements, placements, (like_to_like(shape, src_mesh, dst_mesh, placements), ())


def _leaving(start: Placements, goal: Placements, shape: tuple[int, ...]) -> list[Placements]:
    """Without Partials: whole, or in chunks of one dimension."""
    found = [_become(start, Partial, Replicate())]
    return [*dict.fromkeys(found + [_become(start, Partial, Shard(dim)) for dim in _dims(goal, shape)])]


def _arriving(goal: Placements, start: Placements, shape: tuple[int, ...]) -> list[Placements]:
    """As it shall be, or in chunks of one dimension where it shall be whole."""
    kinds = {p for p in goal if isinstance(p, Partial)}
    if len(kinds) > 1:                          # which of the ranks adds nothing depends on the kind: see `keep`
        goal = _become(goal, Partial, Replicate())
    return [*dict.fromkeys([goal, *(_become(goal, Replicate, Shard(dim)) for dim in _dims(start, shape))])]


def _dims(placements: Placements, shape: tuple[int, ...]) -> list[int]:
    """The dimensions that chunks may be of: those that the other side splits, and the largest."""
    found = [p.dim for p in placements if isinstance(p, Shard)]
    return [*dict.fromkeys(found + [max(range(len(shape)), key=shape.__getitem__)])] if shape else []


def _become(placements: Placements, kind: type, to: Replicate | Shard) -> Placements:
    """The placements with those of a kind replaced; an axis that splits a dimension then splits it last."""
    for axis, p in enumerate(placements):
        if isinstance(p, kind):
            placements = Step(axis, p, to).applied(placements)
    return placements


def _broadcasts(src_mesh: ProcessMesh, dst_mesh: ProcessMesh) -> tuple[Broadcast, ...]:
    """The ranks of the target that have nothing, shared out among those of the source."""
    without = [r for r in dst_mesh.process_ids if not src_mesh.contains(r)]
    roots = src_mesh.process_ids[:len(without)]
    return tuple(Broadcast(root, (root, *without[i::len(roots)])) for i, root in enumerate(roots))
