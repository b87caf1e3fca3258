"""Who sends which block to whom in a reshard: pure data, for a picture, and to count.

A collective is shown by what it moves from rank to rank, not by how a ring or a tree does it.  What a rank sends here
adds up to what `cost.py` counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.reshard.across import Message, exchanged, overlap
from minipd.dist.reshard.between import Between
from minipd.dist.reshard.plan import Plan
from minipd.dist.reshard.steps import AnyStep, Exchange, Placements
from minipd.dist.sharding import Block, ceil_chunk, local_blocks, local_shape

__all__: list[str] = []


class Sent(NamedTuple):
    """Rank `src` gives `elements` of a block of the global tensor to rank `dst`: all of it, but in an all-reduce, where
    a rank adds up a share of what all of them hold.

    shape, offsets: of the block.  partial: whether it is a part of a sum (or of another reduction) that is sent.
    """

    src: int
    dst: int
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    elements: int
    partial: bool = False


class Stage(NamedTuple):
    """A step, the placements before and after it, and what it sends.   step: None for what crosses between meshes.

    mesh, before: of the ranks that send.  after_mesh, after: of those that get it.
    """

    step: AnyStep | None
    mesh: ProcessMesh
    before: Placements
    after_mesh: ProcessMesh
    after: Placements
    sent: tuple[Sent, ...]

    def bytes_by_rank(self, itemsize: int) -> dict[int, int]:
        """How many bytes each rank gives to others."""
        found = dict.fromkeys(dict.fromkeys((*self.mesh.process_ids, *self.after_mesh.process_ids)), 0)
        for s in self.sent:
            found[s.src] += s.elements * itemsize
        return found


def messages(plan: Plan, shape: Sequence[int]) -> list[Stage]:
    """What each step of a plan sends, for a tensor of global `shape`; nothing from a rank to itself.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.dist.reshard.plan import plan
    >>> stage, = messages(plan((Shard(0),), (Shard(1),), parse_mesh("tp=2"), 2), (3, 4))
    >>> for s in stage.sent:
    ...     print(s.src, "->", s.dst, s.shape, s.offsets)
    0 -> 1 (2, 2) (0, 2)
    1 -> 0 (1, 2) (2, 0)
    """
    return [Stage(step, plan.mesh, before, plan.mesh, after,
                  tuple(_of_step(step, before, after, plan.mesh, tuple(shape))))
            for step, before, after in plan.stages]


def messages_between(between: Between, shape: Sequence[int]) -> list[Stage]:
    """What a reshard from one mesh to another sends.

    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.dist.reshard.between import plan_between
    >>> two, others = ProcessMesh([0, 1]), ProcessMesh([2, 3])
    >>> found = messages_between(plan_between(two, (Shard(0),), others, (Replicate(),), (4, 6)), (4, 6))
    >>> [(stage.step and stage.step.action, stage.bytes_by_rank(4)) for stage in found]
    [(None, {0: 48, 1: 48, 2: 0, 3: 0}), ('all_gather', {2: 48, 3: 48})]
    """
    here, there = between.here, between.there
    crossing = [_sent(m) for m in between.messages if m.src != m.dst]
    for b in between.broadcasts:
        crossing += [Sent(b.group[i - (1 << i.bit_length() - 1)], b.group[i], tuple(shape), (0,) * len(shape),
                          math.prod(shape)) for i in range(1, len(b.group))]
    return [*messages(here, shape), Stage(None, here.mesh, here.dst, there.mesh, there.src, tuple(crossing)),
            *messages(there, shape)]


def _sent(m: Message, partial: bool = False) -> Sent:
    return Sent(*m, math.prod(m.shape), partial)


def _of_step(step: AnyStep, before: Placements, after: Placements, mesh: ProcessMesh,
             shape: tuple[int, ...]) -> Iterator[Sent]:
    if isinstance(step, Exchange):
        yield from (_sent(m) for m in exchanged(shape, mesh, before, after) if m.src != m.dst)
        return
    if step.action in ("slice", "keep", "pad"):
        return
    for src in mesh.process_ids:
        group = mesh.group(src, step.axis)
        held = local_blocks(shape, mesh, before, src)
        for number, dst in enumerate(group):
            if dst == src:
                continue
            if step.action == "all_reduce":             # the share that dst adds up, and the one that src has added up
                total = math.prod(local_shape(shape, mesh, before, src))
                for of, partial in ((number, True), (group.index(src), False)):
                    elements = ceil_chunk(total, len(group), of)[0]
                    yield from (Sent(src, dst, b.shape, b.offsets, elements, partial) for b in held[:1] if elements)
            else:
                got = local_blocks(shape, mesh, after, dst)
                partial = step.action == "reduce_scatter"
                yield from (_sent(Message(src, dst, *block), partial) for block in _common(held, got))


def _common(held: Sequence[Block], got: Sequence[Block]) -> Iterator[Any]:
    for a in held:
        for b in got:
            block = overlap((a.shape, a.offsets), (b.shape, b.offsets))
            if block is not None:
                yield block
