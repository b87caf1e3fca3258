"""A tensor in a checkpoint: what the index says of it, and how a rank of any mesh reads its part.

The file of a rank holds its window of every tensor that it has.  A rank that reads wants a window of its own, under
another mesh maybe, or all of the tensor: it is put together from the windows that overlap it.  So the same checkpoint
serves every mesh, and whatever a mesh reads is bit by bit what was saved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.dist.checkpoint.values import held
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard, check_placements
from minipd.dist.reshard.across import by_window, overlap
from minipd.dist.sharding import local_window, sharding_text
from minipd.dist.value import DistValue
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["Stored", "entry", "merged", "window_of"]

#: `read(rank, name, meta)`: what the file of a rank has under a name, which is to have the shape and dtype of `meta`
Read = Callable[[int, str, Meta], np.ndarray]


def entry(t: Tensor) -> dict[str, Any]:
    """What the index says of a tensor: global shape and dtype; if it is distributed, how, and over which ranks."""
    p = held(t)
    found: dict[str, Any] = {"shape": list(p.shape), "dtype": dtypes.of(p.dtype).name, "sharding": describe(p)}
    if isinstance(p, DistValue):
        found["sharding"] = sharding_text(p.shape, p.dtype, p.mesh, p.placements)
        found["mesh"] = dict(zip(p.mesh.names, p.mesh.sizes, strict=True))
        found["ranks"] = p.mesh.process_ids
        found["split"] = [q.get_dim() if isinstance(q, Shard) else None for q in p.placements]
        order = [q.get_co_shard_order() if isinstance(q, Shard) else 0 for q in p.placements]
        if any(order):                                  # axes do not split a dimension in the order of the mesh
            found["order"] = order
    return found


def merged(entries: list[dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """The entries of all ranks, by name.  What is not distributed is whole on every rank that has it."""
    index: dict[str, dict[str, Any]] = {}
    for rank, mine in enumerate(entries):
        for name, found in mine.items():
            if "mesh" not in found:
                found = {**found, "ranks": [*index.get(name, {"ranks": []})["ranks"], rank]}
            index[name] = found
    return index


def window_of(t: Tensor) -> tuple[tuple, tuple]:
    """(shape, offsets) of what this rank holds of a tensor."""
    p = held(t)
    if isinstance(p, DistValue):
        return local_window(p.shape, p.mesh, p.placements, current().rank)
    return p.shape, (0,) * p.ndim


class Stored:
    """A tensor that a checkpoint has.   found: its entry in the index."""

    def __init__(self, name: str, found: dict[str, Any]):
        self.name, self.shape, self.ranks = name, tuple(found["shape"]), list(found["ranks"])
        self.dtype = dtypes.to_np(found["dtype"])
        sizes = found.get("mesh") or {"rank": len(self.ranks)}
        split = found.get("split", [None])
        placements: list[Placement] = [Replicate() if d is None else Shard(d, shard_order=order) for d, order in
                                       zip(split, found.get("order", [0] * len(split)), strict=True)]
        if math.prod(sizes.values()) != len(self.ranks) or len(sizes) != len(placements):
            raise ValueError(f"{name}: expected one rank per place of the mesh {sizes}, and one placement per axis")
        mesh = ProcessMesh(shape=tuple(sizes.values()), process_ids=self.ranks, dim_names=list(sizes))
        self.windows = by_window(self.shape, mesh, check_placements(placements, mesh, len(self.shape), name))

    def read(self, window: tuple[tuple, tuple], rank: int, read: Read) -> np.ndarray:
        """The window of the tensor that `rank` wants; where several files have a part of it, from its own if it can."""
        shape, offsets = window
        out = np.empty(shape, self.dtype)
        for source, ranks in self.windows.items():
            block = overlap(window, source)
            if block is None:
                continue
            array = read(rank if rank in ranks else ranks[0], self.name, Meta(source[0], self.dtype))
            out[_place(block, offsets)] = array[_place(block, source[1])]
        return out


def _place(block: tuple[tuple, tuple], offsets: tuple) -> tuple[slice, ...]:
    """Where a block of the tensor is in an array that begins at these offsets of it."""
    return tuple(slice(start - at, start - at + n) for n, start, at in zip(*block, offsets, strict=True))
