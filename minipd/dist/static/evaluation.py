"""The dist interpreter over a program, whose values may be on several meshes.

Over metas it finds placements (`Survey`, for completion), over a trace it writes a rank's program (`Local`, for
partition).  Operations on one mesh are those of the eager interpreter.  What is its own is how a value gets to another
mesh: eagerly that is a conversation, here it becomes operations, `p2p_send` and `p2p_recv`.

A rank outside of a mesh has nothing of the values on it (`Elsewhere`), so nothing is written for it: what belongs to
other ranks drops out by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.crossing import elsewhere
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard.across import Message, plan_across
from minipd.dist.rows import whole
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.framework.dim import is_symbolic
from minipd.framework.meta import Meta
from minipd.framework.row import ROWS

__all__: list[str] = []

Placements = tuple[Placement, ...]


class Survey(Dist):
    """For completion: every operation is seen by the first rank of its mesh, and nothing is computed."""

    def __init__(self) -> None:
        super().__init__(0)

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        self.rank = mesh.process_ids[0]
        return super().run(lower, row, payloads, attrs, mesh)

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: Placements, lower: Callable) -> DistValue:
        x.moved(whole(x.placements), lower, x.mesh.process_ids[0])
        return placed_meta(x.shape, x.dtype, mesh, placements)


class Local(Dist):
    """For partition: what one rank does.

    `dist_op.dtensor_to_local` and `dtensor_from_local`, which stand around communication that a pass has inserted, are
    nothing to a rank.
    """

    def over(self, lower: Callable) -> Callable:
        run = super().over(lower)

        def here(row: Any, payloads: Any, attrs: dict) -> Any:
            if row.name == "dtensor_to_local":
                return payloads[0].held().local if type(payloads[0]) is DistValue else payloads[0]
            if row.name == "dtensor_from_local":
                x = payloads[0]
                return DistValue(x, tuple(attrs["shape"]), x.dtype, attrs["mesh"], tuple(attrs["placements"]))
            return run(row, payloads, attrs)
        return here

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: Placements, lower: Callable) -> DistValue:
        if is_symbolic(x.shape):
            raise NotImplementedError(f"reshard to another mesh: expected sizes that are numbers, got {x!r}; give the "
                                      "inputs of the program fixed sizes")
        x, wanted = x.moved(whole(x.placements), lower, self.rank), whole(placements)
        messages = plan_across(x.shape, x.mesh, x.placements, mesh, wanted)
        here, there = x.mesh.contains(self.rank), mesh.contains(self.rank)
        at = local_window(x.shape, x.mesh, x.placements, self.rank)[1] if here else ()
        for m in messages:
            if m.src == self.rank != m.dst:
                lower(ROWS["p2p_send"], [block_of(x.local, at, m, lower)], {"dst": m.dst, "tag": 0})
        if not there:
            return elsewhere(x.shape, x.dtype, mesh, placements)
        window = local_window(x.shape, mesh, wanted, self.rank)
        blocks = []
        for m in (m for m in messages if m.dst == self.rank):
            if m.src == self.rank:
                blocks.append((m, block_of(x.local, at, m, lower)))
            else:
                blocks.append((m, lower(ROWS["p2p_recv"], [], {"src": m.src, "shape": m.shape, "dtype": x.dtype,
                                                               "tag": 0})))
        local = assembled(window, x.dtype, blocks, lower)
        return DistValue(local, x.shape, x.dtype, mesh, wanted).moved(placements, lower, self.rank)


def placed_meta(shape: tuple, dtype: Any, mesh: ProcessMesh, placements: Placements) -> DistValue:
    """A value without data, as the first rank of its mesh sees it."""
    return DistValue(Meta(local_window(shape, mesh, placements, mesh.process_ids[0])[0], dtype), shape, dtype, mesh,
                     placements)


def block_of(local: Any, at: tuple, m: Message, lower: Callable) -> Any:
    """The block of a message, out of what the rank holds, a window at the offsets `at`."""
    starts = tuple(o - a for o, a in zip(m.offsets, at, strict=True))
    if tuple(local.shape) == m.shape:
        return local
    ends = tuple(s + n for s, n in zip(starts, m.shape, strict=True))
    return lower(ROWS["slice"], [local], {"axes": tuple(range(len(starts))), "starts": starts, "ends": ends})


def assembled(window: tuple, dtype: Any, blocks: list[tuple[Message, Any]], lower: Callable) -> Any:
    """A window put together from the blocks that came for it; a window without elements has none."""
    shape, offsets = window
    if len(blocks) == 1 and blocks[0][0].shape == shape:
        return blocks[0][1]
    out = lower(ROWS["full"], [], {"shape": shape, "value": 0, "dtype": dtype})
    for m, block in blocks:
        starts = tuple(o - a for o, a in zip(m.offsets, offsets, strict=True))
        ends = tuple(s + n for s, n in zip(starts, m.shape, strict=True))
        out = lower(ROWS["set_value"], [out, block], {"axes": tuple(range(len(shape))), "starts": starts, "ends": ends,
                                                      "strides": (1,) * len(shape)})
    return out
