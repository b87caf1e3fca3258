"""What a rank holds of a tensor, as blocks of the global one."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.checkpoint.sharded_weight import ShardedWeight
from minipd.dist.placements import whole
from minipd.dist.sharding import Block, local_blocks, local_shape
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.optimizer.optimizer import replace

__all__: list[str] = []


def held(t: Tensor | ShardedWeight) -> np.ndarray | DistValue:
    """A tensor's value as it is held now: a Partial that somebody has resolved is what it was resolved to."""
    t = t.local_tensor if isinstance(t, ShardedWeight) else t
    return t.payload.held() if isinstance(t.payload, DistValue) else t.payload


def shape_of(t: Tensor | ShardedWeight) -> tuple[int, ...]:
    """The global shape."""
    return tuple(t.global_shape if isinstance(t, ShardedWeight) else held(t).shape)


def local_array(t: Tensor | ShardedWeight) -> np.ndarray:
    """What this rank holds of a tensor."""
    p = held(t)
    return p.local if isinstance(p, DistValue) else p


def resolved(t: Tensor | ShardedWeight) -> Tensor | ShardedWeight:
    """The tensor without parts that are still to be added up: these would be of no use to another mesh."""
    if isinstance(t, Tensor) and isinstance(t.payload, DistValue):
        t.payload.moved(whole(t.payload.placements), Kernels().run, current().rank)
    return t


def is_here(t: Tensor | ShardedWeight) -> bool:
    """Whether this rank has a part of the tensor: not if it is on a mesh without it."""
    p = held(t)
    return not isinstance(p, DistValue) or p.mesh.contains(current().rank)


def blocks_of(t: Tensor | ShardedWeight) -> list[Block]:
    """The blocks of the global tensor that this rank holds, where in its array each is."""
    if isinstance(t, ShardedWeight):
        return [Block(t.local_shape, t.global_offset, (0,) * len(t.local_shape))]
    p = held(t)
    if isinstance(p, DistValue):
        return local_blocks(p.shape, p.mesh, p.placements, current().rank)
    return [Block(tuple(p.shape), (0,) * p.ndim, (0,) * p.ndim)]


def room_for(t: Tensor | ShardedWeight) -> np.ndarray:
    """An array for what this rank holds of a tensor, not filled."""
    p = held(t)
    shape = local_shape(p.shape, p.mesh, p.placements, current().rank) if isinstance(p, DistValue) else p.shape
    return np.empty(shape, p.dtype)


def fill(t: Tensor | ShardedWeight, array: np.ndarray) -> None:
    """Other values for a tensor; who shares its memory sees them."""
    t = t.local_tensor if isinstance(t, ShardedWeight) else t
    p = held(t)
    new: Any = DistValue(array, p.shape, p.dtype, p.mesh, p.placements) if isinstance(p, DistValue) else array
    replace(t, Tensor(new))
    if isinstance(t, Parameter):
        t.initialize = None                 # one that was made lazily has its values now


def copy_block(common: tuple[tuple, tuple], source: np.ndarray, source_at: tuple[int, ...], target: np.ndarray,
               target_block: Block) -> None:
    """Copy a block (shape, offsets) of the global tensor between arrays.

    source: the block of the tensor that begins at `source_at`.  target_block: where in target which block is.
    """
    shape, offsets = common
    there = tuple(slice(o - at, o - at + n) for n, o, at in zip(shape, offsets, source_at, strict=True))
    here = tuple(slice(o - of + at, o - of + at + n)
                 for n, o, of, at in zip(shape, offsets, target_block.offsets, target_block.at, strict=True))
    target[here] = source[there]
