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

from minipd.dist.crossing import cross
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.sharding import local_shape
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta

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
        return cross(x, mesh, placements, self.rank, lower)


def placed_meta(shape: tuple, dtype: Any, mesh: ProcessMesh, placements: Placements) -> DistValue:
    """A value without data, as the first rank of its mesh sees it."""
    return DistValue(Meta(local_shape(shape, mesh, placements, mesh.process_ids[0]), dtype), shape, dtype, mesh,
                     placements)
