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

from minipd.dist.crossing import cross, elsewhere
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import local_shape
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta
from minipd.ir.program import Program
from minipd.ir.value import Value

__all__: list[str] = []

Placements = tuple[Placement, ...]


class OverPrograms(Dist):
    """What is between `dist_op.dtensor_to_local` and `dtensor_from_local` is what one rank computes: inserted
    communication, and code that the user has written for a rank.  Its values are on no mesh.
    """

    def over(self, lower: Callable) -> Callable:
        run = super().over(lower)

        def here(row: Any, payloads: Any, attrs: dict) -> Any:
            if row.name == "dtensor_to_local" and type(payloads[0]) is DistValue:
                return self.to_local(lower, row, payloads[0], attrs)
            if row.name == "dtensor_from_local":
                return self.from_local(lower, row, payloads[0], attrs)
            if row.name in ("match", "align") and not any(type(p) is DistValue for p in payloads):
                return tuple(payloads) if row.multi else payloads[0]
            return run(row, payloads, attrs)
        return here

    def to_local(self, lower: Callable, row: Any, x: DistValue, attrs: dict) -> Any:
        """The payload of what this rank holds."""
        raise NotImplementedError

    def from_local(self, lower: Callable, row: Any, x: Any, attrs: dict) -> DistValue:
        """The payload of the global value."""
        raise NotImplementedError


class Survey(OverPrograms):
    """For completion: every operation is seen by the first rank of its mesh, and nothing is computed."""

    def __init__(self) -> None:
        super().__init__(0)

    def to_local(self, lower: Callable, row: Any, x: DistValue, attrs: dict) -> Meta:
        return Meta(tuple(attrs["shape"]), x.dtype)

    def from_local(self, lower: Callable, row: Any, x: Any, attrs: dict) -> DistValue:
        return placed_meta(tuple(attrs["shape"]), x.dtype, attrs["mesh"], tuple(attrs["placements"]))

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        self.rank = mesh.process_ids[0]
        return super().run(lower, row, payloads, attrs, mesh)

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: Placements, lower: Callable) -> DistValue:
        return placed_meta(x.shape, x.dtype, mesh, placements)


class Local(OverPrograms):
    """For partition: what one rank does, to which `dtensor_to_local` and `dtensor_from_local` are nothing.

    On a mesh without the rank, the first rank of the mesh has a value there alone: nothing is written of what is
    computed with it.
    """

    def to_local(self, lower: Callable, row: Any, x: DistValue, attrs: dict) -> Any:
        if x.mesh.contains(self.rank):
            return x.moved(x.placements, lower, self.rank).local
        first = ProcessMesh(x.mesh.process_ids[:1], ["rank"])
        return elsewhere(tuple(attrs["shape"]), x.dtype, first, (Replicate(),))

    def from_local(self, lower: Callable, row: Any, x: Any, attrs: dict) -> DistValue:
        shape, mesh, placements = tuple(attrs["shape"]), attrs["mesh"], tuple(attrs["placements"])
        if not mesh.contains(self.rank):
            return elsewhere(shape, x.dtype, mesh, placements)
        return DistValue(x.held().local if type(x) is DistValue else x, shape, x.dtype, mesh, placements)

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: Placements, lower: Callable) -> DistValue:
        return cross(x, mesh, placements, self.rank, lower)


def local_values(program: Program) -> set[Value]:
    """What is computed between `dtensor_to_local` and `dtensor_from_local`: a rank's own values, on no mesh."""
    found: set[Value] = set()
    for op in program.walk():
        if op.name() == "dist_op.dtensor_to_local" or op.name() != "dist_op.dtensor_from_local" and any(
                v in found for v in op.operands_source()):
            found.update(op.results())
    return found


def placed_meta(shape: tuple, dtype: Any, mesh: ProcessMesh, placements: Placements) -> DistValue:
    """A value without data, as the first rank of its mesh sees it."""
    return DistValue(Meta(local_shape(shape, mesh, placements, mesh.process_ids[0]), dtype), shape, dtype, mesh,
                     placements)
