"""Which block goes from which rank to which, where ranks talk directly: between meshes, and in an exchange on one.

Between meshes there is no group that a collective could run on, so every rank of the target gets the blocks that it
shall hold from ranks of the source that hold them, one message per block.

    source, 2 ranks, S(0)      target, 3 ranks, S(0)       6 rows
    rank 0  rows 0 1 2         rank 2  rows 0 1            0 -> 2: rows 0 1
    rank 1  rows 3 4 5         rank 3  rows 2 3            0 -> 3: row 2        1 -> 3: row 3
                               rank 4  rows 4 5            1 -> 4: rows 4 5

Where several ranks of the source hold a block, the targets that want it take turns among them, the least busy one first
(or keep their own, if they are among them).  For equal placements on meshes of equal shape, rank i of the one thus
sends to rank i of the other, and nobody else.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, whole
from minipd.dist.sharding import Run, local_blocks, local_runs, local_window

__all__: list[str] = []

Window = tuple[tuple, tuple]            # (shape, offsets) of a block in the global tensor
Holders = dict[tuple[tuple[Run, ...], ...], list[int]]         # runs of every dimension -> who holds these


class Message(NamedTuple):
    """Rank `src` gives rank `dst` the block of this shape at these offsets of the global tensor."""

    src: int
    dst: int
    shape: tuple[int, ...]
    offsets: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def plan_across(shape: tuple[int, ...], src_mesh: ProcessMesh, src: tuple[Placement, ...], dst_mesh: ProcessMesh,
                dst: tuple[Placement, ...]) -> tuple[Message, ...]:
    """The messages of a reshard of a tensor of global `shape`, ordered by receiver.

    Messages of a rank to itself are copies.  No placement of `src` is Partial.  Of a Partial axis of `dst` only the
    first ranks get something; the others hold what adds nothing (see `adds_nothing`), but for an average, of which all
    have the value.

    >>> from minipd.dist.placements import Shard
    >>> source, target = ProcessMesh([0, 1]), ProcessMesh([2, 3, 4])
    >>> for m in plan_across((6,), source, (Shard(0),), target, (Shard(0),)):
    ...     print(m.src, "->", m.dst, m.shape, m.offsets)
    0 -> 2 (2,) (0,)
    0 -> 3 (1,) (2,)
    1 -> 3 (1,) (3,)
    1 -> 4 (2,) (4,)
    """
    targets = [r for r in dst_mesh.process_ids if not adds_nothing(dst_mesh, dst, r)]
    found = _block_messages(_holders(shape, src_mesh, src, src_mesh.process_ids),
                            _holders(shape, dst_mesh, dst, targets))
    return _sorted(found, dst_mesh)


def adds_nothing(mesh: ProcessMesh, placements: Sequence[Placement], rank: int) -> bool:
    """Whether a rank gets no part of a value that comes to a mesh, because another one keeps it."""
    return any(isinstance(p, Partial) and p.op != "avg" and at > 0
               for p, at in zip(placements, mesh.coordinate(rank), strict=True))


@functools.lru_cache(maxsize=4096)
def exchanged(shape: tuple[int, ...], mesh: ProcessMesh, src: tuple[Placement, ...],
              dst: tuple[Placement, ...]) -> tuple[Message, ...]:
    """The messages that bring a tensor from `src` to `dst` on one mesh.  Along an axis that is Partial before and
    after, every rank stays by itself: who is at another place there has another part of the sum."""
    partial = [axis for axis, p in enumerate(src) if isinstance(p, Partial)]
    places: dict[tuple[int, ...], list[int]] = {}
    for rank in mesh.process_ids:
        places.setdefault(tuple(mesh.coordinate(rank)[axis] for axis in partial), []).append(rank)
    found = []
    for ranks in places.values():
        found += _block_messages(_holders(shape, mesh, whole(src), ranks), _holders(shape, mesh, whole(dst), ranks))
    return _sorted(found, mesh)


@functools.lru_cache(maxsize=4096)
def like_to_like(shape: tuple[int, ...], src_mesh: ProcessMesh, dst_mesh: ProcessMesh,
                 placements: tuple[Placement, ...]) -> tuple[Message, ...]:
    """The messages between meshes of equal shape that leave the placements what they are, Partial ones too: rank i of
    the one gives what it holds to rank i of the other."""
    return tuple(Message(a, b, block.shape, block.offsets)
                 for a, b in zip(src_mesh.process_ids, dst_mesh.process_ids, strict=True)
                 for block in local_blocks(shape, src_mesh, placements, a))


def _holders(shape: tuple[int, ...], mesh: ProcessMesh, placements: Sequence[Placement],
             ranks: Sequence[int]) -> Holders:
    """The different parts of a tensor, as the runs of every dimension, each with those of `ranks` that hold it."""
    found: Holders = {}
    for rank in ranks:
        found.setdefault(local_runs(shape, mesh, placements, rank), []).append(rank)
    return found


def _block_messages(holders: Holders, wanted: Holders) -> list[Message]:
    """The blocks of `wanted` from `holders`: from the rank itself, else from the one that has sent least so far, and
    among those in turn."""
    found = []
    load: Counter[int] = Counter()
    ndim = len(next(iter(holders)))
    by_dim = [dict.fromkeys(part[dim] for part in holders) for dim in range(ndim)]
    for part, targets in wanted.items():
        # per dimension, the runs that somebody holds and what of them is wanted: few, where holders are many
        common = [[(held, both) for held in by_dim[dim] if (both := _common(runs, held))]
                  for dim, runs in enumerate(part)]
        sources = []
        for chosen in itertools.product(*common):
            ranks = holders.get(tuple(held for held, _ in chosen))
            if ranks:
                sources.append((ranks, [(tuple(n for _, n in block), tuple(o for o, _ in block))
                                        for block in itertools.product(*(both for _, both in chosen))]))
        for turn, target in enumerate(targets):
            for ranks, blocks in sources:
                source = target
                if target not in ranks:
                    n = len(ranks)
                    source = ranks[min(range(n), key=lambda i, n=n, turn=turn, ranks=ranks: (       # type: ignore
                        load[ranks[i]], (i - turn) % n))]
                    load[source] += sum(math.prod(shape) for shape, _ in blocks)
                found += [Message(source, target, *block) for block in blocks]
    return found


def _common(a: Sequence[Run], b: Sequence[Run]) -> list[Run]:
    """The runs of elements that are in both."""
    return [(start, end - start) for o, n in a for q, m in b if (start := max(o, q)) < (end := min(o + n, q + m))]


def _sorted(messages: list[Message], mesh: ProcessMesh) -> tuple[Message, ...]:
    order = {rank: i for i, rank in enumerate(mesh.process_ids)}
    return tuple(sorted(messages, key=lambda m: (order[m.dst], m.offsets)))


def by_window(shape: tuple[int, ...], mesh: ProcessMesh, placements: Sequence[Placement]) -> dict[Window, list[int]]:
    """The different windows of a tensor, each with the ranks that hold it."""
    found: dict[Window, list[int]] = {}
    for rank in mesh.process_ids:
        found.setdefault(local_window(shape, mesh, placements, rank), []).append(rank)
    return found


def overlap(a: Window, b: Window) -> Window | None:
    """The block that is in both windows; None if that is nothing.

    >>> overlap(((2, 3), (0, 0)), ((4, 2), (1, 2)))
    ((1, 1), (1, 2))
    """
    starts = tuple(max(i, j) for i, j in zip(a[1], b[1], strict=True))
    sizes = tuple(min(i + n, j + m) - start for n, i, m, j, start in zip(*a, *b, starts, strict=True))
    return None if any(n <= 0 for n in sizes) else (sizes, starts)
