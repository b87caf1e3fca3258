"""What a step of a reshard sends, to the byte, and what that costs.

Counted is what one rank gives to others: with n ranks in the group, of what each holds before the step

    all_gather       n - 1 times its chunk              all_to_all   all but the piece that stays
    reduce_scatter   all but the chunk it keeps         exchange     the blocks that it sends
    all_reduce       a reduce_scatter and an all_gather of chunks of the elements in a row

which is what ring algorithms send, too (over all ranks; of uneven chunks a ring hands round the same, in other turns).
The sizes come from the split rule, so they are exact where chunks are uneven.

The cost is the usual one, alpha for every message and beta for every byte, of the rank that sends most, step by step.
A ring passes n - 1 messages one after the other; to start a collective, or a message outside of one, costs as much
again as a message takes on its way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Shard, splitting_order
from minipd.dist.reshard.across import Message, exchanged
from minipd.dist.reshard.steps import AnyStep, Exchange, Placements, Step
from minipd.dist.sharding import ceil_chunk, local_shape
from minipd.framework.dim import is_symbolic, size_hint

__all__: list[str] = []

#: seconds that a message takes on its way, bytes in a second: of the order that one machine's ranks have
LATENCY, BANDWIDTH = 5e-6, 10e9
#: alpha over beta: the bytes that could go in the time of a message
ALPHA = int(LATENCY * BANDWIDTH)
#: bytes of an element, for a plan is made for all dtypes; and of the whole, where no shape is known: a small tensor
ITEM, SMALL = 4, 4096


def of_step(step: AnyStep, now: Placements, mesh: ProcessMesh, shape: Sequence[Any] | None) -> tuple[Any, Any]:
    """(cost in bytes, bytes) of a step from the placements `now`, for the rank that sends most.

    shape: the global one; None, or one with symbols, counts with even chunks.
    """
    if isinstance(step, Exchange):
        assert shape is not None, "an exchange is planned for a shape"
        return of_messages(exchanged(tuple(shape), mesh, step.src, step.dst))
    if step.action in ("slice", "keep", "pad"):
        return 0, 0
    ways = mesh.sizes[step.axis]
    if shape is None or is_symbolic(tuple(shape)):
        whole = SMALL if shape is None else ITEM * math.prod(map(size_hint, shape))
        amount: Any = _even(step, now, mesh, whole)
    else:
        amount = ITEM * _most(step, now, mesh, shape)
    return ALPHA * (1 + (2 if step.action == "all_reduce" else 1) * (ways - 1)) + amount, amount


def _most(step: Step, now: Placements, mesh: ProcessMesh, shape: Sequence[int]) -> int:
    """The elements that the busiest rank sends.  First chunks are the largest, so it is the first along the other axes.
    """
    sizes = list(shape)
    for axis in splitting_order(now):
        p: Any = now[axis]
        sizes[p.dim] = p.factor * ceil_chunk(sizes[p.dim] // p.factor, mesh.sizes[axis], 0)[0]
    total, ways = math.prod(sizes), mesh.sizes[step.axis]
    if step.action == "all_gather":
        return (ways - 1) * total
    if step.action == "all_reduce":
        return total + (ways - 2) * ceil_chunk(total, ways, 0)[0]
    dst: Any = step.dst
    most = 0
    for index in range(ways):                   # a first one has most to give, a last one keeps least
        local = list(sizes)
        if step.action == "all_to_all":
            src: Any = step.src
            local[src.dim] = _chunk_of(src, step.axis, index, now, mesh, shape)
        kept = dst.factor * ceil_chunk(local[dst.dim] // dst.factor, ways, index)[0]
        most = max(most, math.prod(local) // max(local[dst.dim], 1) * (local[dst.dim] - kept))
    return most


def _chunk_of(p: Any, axis: int, index: int, now: Placements, mesh: ProcessMesh, shape: Sequence[int]) -> int:
    """The extent of chunk `index` over `axis`, which splits the dimension of `p` last."""
    extent = shape[p.dim]
    for other in splitting_order(now):
        q: Any = now[other]
        if q.dim == p.dim:
            at = index if other == axis else 0
            extent = q.factor * ceil_chunk(extent // q.factor, mesh.sizes[other], at)[0]
    return extent


def of_messages(messages: Sequence[Message]) -> tuple[int, int]:
    """(cost in bytes, bytes) of messages that all go at once, for the rank that sends or gets most."""
    count: Counter[tuple[str, int]] = Counter()
    amount: Counter[tuple[str, int]] = Counter()
    for m in messages:
        if m.src != m.dst:
            for end in (("from", m.src), ("to", m.dst)):
                count[end] += 1
                amount[end] += ITEM * math.prod(m.shape)
    most = max(amount.values(), default=0)
    return 2 * ALPHA * max(count.values(), default=0) + most, most


def _even(step: Step, now: Placements, mesh: ProcessMesh, whole: int) -> Fraction:
    """What one rank sends of a tensor of `whole` bytes that splits evenly."""
    local = Fraction(whole)
    for p, size in zip(now, mesh.sizes, strict=True):
        if isinstance(p, Shard):
            local /= size
    ways = mesh.sizes[step.axis]
    others = Fraction(ways - 1, ways)
    share = {"all_reduce": 2 * others, "all_gather": Fraction(ways - 1)}
    return local * share.get(step.action, others)


def sent(step: AnyStep, now: Placements, mesh: ProcessMesh, shape: Sequence[int], rank: int) -> int:
    """The elements that `rank` gives to others in a step from the placements `now`.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate
    >>> from minipd.dist.reshard.steps import Step
    >>> gather = Step(0, Shard(0), Replicate())
    >>> [sent(gather, (Shard(0),), parse_mesh("tp=4"), (5, 8), rank) for rank in range(4)]
    [48, 48, 24, 0]
    """
    if isinstance(step, Exchange):
        return sum(math.prod(m.shape) for m in exchanged(tuple(shape), mesh, step.src, step.dst)
                   if m.src == rank != m.dst)
    group = mesh.group(rank, step.axis)
    others, index = len(group) - 1, mesh.coordinate(rank)[step.axis]
    if others == 0 or step.action in ("slice", "keep", "pad"):
        return 0
    before = local_shape(shape, mesh, now, rank)
    total = math.prod(before)
    if step.action == "all_gather":
        return others * total
    if step.action == "reduce_scatter":
        return total - math.prod(local_shape(shape, mesh, step.applied(now), rank))
    if step.action == "all_reduce":
        own = ceil_chunk(total, len(group), index)[0]
        return total - own + others * own
    dim = step.dst.dim                                                          # type: ignore[attr-defined]
    kept = local_shape(shape, mesh, step.applied(now), rank)[dim]
    return total // before[dim] * (before[dim] - kept) if total else 0


def of_broadcast(elements: int, ranks: int) -> int:
    """The cost of a broadcast in a group of so many ranks, down a tree in which who has it gives it on."""
    rounds = max(ranks - 1, 0).bit_length()
    return ALPHA * (1 + rounds) + rounds * ITEM * elements
