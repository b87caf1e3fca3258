"""A reshard between two meshes: which block goes from which rank to which.

Within one mesh a reshard is collectives (plan.py).  Between meshes there is no group that they could run on, so every
rank of the target gets the blocks of its window from ranks of the source that hold them, one message per block.

    source, 2 ranks, S(0)      target, 3 ranks, S(0)       6 rows
    rank 0  rows 0 1 2         rank 2  rows 0 1            0 -> 2: rows 0 1
    rank 1  rows 3 4 5         rank 3  rows 2 3            0 -> 3: row 2        1 -> 3: row 3
                               rank 4  rows 4 5            1 -> 4: rows 4 5

Where several ranks of the source hold a block, the targets that want it take turns among them (or keep their own, if
they are among them).  For equal placements on meshes of equal shape, rank i of the one thus sends to rank i of the
other, and nobody else.

A Partial is reduced on the source first.  To a Partial, the value goes whole, and one rank of it keeps it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.sharding import local_window

__all__: list[str] = []

Window = tuple[tuple, tuple]            # (shape, offsets) of a block in the global tensor


class Message(NamedTuple):
    """Rank `src` gives rank `dst` the block of this shape at these offsets of the global tensor."""

    src: int
    dst: int
    shape: tuple[int, ...]
    offsets: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def plan_across(shape: tuple[int, ...], src_mesh: ProcessMesh, src: tuple[Placement, ...], dst_mesh: ProcessMesh,
                dst: tuple[Placement, ...]) -> tuple[Message, ...]:
    """The messages of a reshard of a tensor of global `shape`, ordered by receiver; no placement is Partial.

    Messages of a rank to itself are copies.

    >>> from minipd.dist.placements import Shard
    >>> source, target = ProcessMesh([0, 1]), ProcessMesh([2, 3, 4])
    >>> for m in plan_across((6,), source, (Shard(0),), target, (Shard(0),)):
    ...     print(m.src, "->", m.dst, m.shape, m.offsets)
    0 -> 2 (2,) (0,)
    0 -> 3 (1,) (2,)
    1 -> 3 (1,) (3,)
    1 -> 4 (2,) (4,)
    """
    holders = by_window(shape, src_mesh, src)
    found = []
    for wanted, targets in by_window(shape, dst_mesh, dst).items():
        for turn, target in enumerate(targets):
            for window, ranks in holders.items():
                block = overlap(wanted, window)
                if block is not None:
                    source = target if target in ranks else ranks[turn % len(ranks)]
                    found.append(Message(source, target, *block))
    return tuple(sorted(found, key=lambda m: (dst_mesh.process_ids.index(m.dst), m.offsets)))


def by_window(shape: tuple[int, ...], mesh: ProcessMesh, placements: Sequence[Placement]) -> dict[Window, list[int]]:
    """The different windows of a tensor, each with the ranks that hold it."""
    found: dict[Window, list[int]] = {}
    for rank in mesh.process_ids:
        found.setdefault(local_window(shape, mesh, placements, rank), []).append(rank)
    return found


def overlap(a: Window, b: Window) -> Window | None:
    """The block that is in both windows; None if that is nothing."""
    starts = [max(i, j) for i, j in zip(a[1], b[1], strict=True)]
    ends = [min(i + n, j + m) for n, i, m, j in zip(*a, *b, strict=True)]
    if any(end <= start for start, end in zip(starts, ends, strict=True)):
        return None
    return tuple(end - start for start, end in zip(starts, ends, strict=True)), tuple(starts)


def send_blocks(comm: Any, local: np.ndarray, offsets: tuple[int, ...], messages: Sequence[Message],
                tag: int = 0) -> None:
    """This rank's sends.  local: what it holds, a window at `offsets`."""
    for m in messages:
        if m.src == comm.rank and m.dst != comm.rank:
            comm.send(_block(local, offsets, m), m.dst, tag)


def receive_blocks(comm: Any, window: Window, dtype: np.dtype, messages: Sequence[Message], tag: int = 0,
                   own: tuple[np.ndarray, tuple[int, ...]] | None = None) -> np.ndarray:
    """This rank's receives: its window of the target, put together from the blocks.

    own: what it holds of the source, and at which offsets, if it is one of its ranks.
    """
    shape, offsets = window
    mine = [m for m in messages if m.dst == comm.rank]
    if len(mine) == 1 and mine[0].shape == shape and mine[0].src != comm.rank:
        return comm.recv(mine[0].src, tag)              # the usual case in a pipeline: nothing to put together
    out = np.empty(shape, dtype)                        # a window without elements has no message
    for m in mine:
        if m.src != comm.rank:
            block = comm.recv(m.src, tag)
        else:
            assert own is not None, "a rank has messages to itself where it holds a part of the source"
            block = _block(*own, m)
        _block(out, offsets, m)[...] = block
    return out


def _block(local: np.ndarray, offsets: tuple[int, ...], m: Message) -> np.ndarray:
    """The view of a window's array that is the block of a message."""
    return local[(*(slice(o - at, o - at + n) for o, at, n in zip(m.offsets, offsets, m.shape, strict=True)), ...)]
