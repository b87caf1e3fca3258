"""What Paddle's tensors say of their distribution."""

from __future__ import annotations

from minipd.base import core
from minipd.dist.api.local import local_values
from minipd.dist.api.tensors import distributed
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.framework.tensor import Tensor, attach

__all__: list[str] = []


def is_dist(self: Tensor) -> bool:
    """Whether the tensor is distributed over a mesh."""
    return hasattr(self.payload, "placements")


def placements(self: Tensor) -> list[Placement] | None:
    """What each axis of the mesh holds of the tensor; None for an ordinary one."""
    return list(self.payload.placements) if hasattr(self.payload, "placements") else None


def process_mesh(self: Tensor) -> ProcessMesh | None:
    """The mesh over which the tensor is distributed; None for an ordinary one."""
    return self.payload.mesh if hasattr(self.payload, "placements") else None


def _local_value(self: Tensor) -> Tensor:
    """What this rank holds, without history, for reading."""
    return Tensor(local_values(distributed(self, "_local_value"), "_local_value"))


def _local_shape(self: Tensor) -> list[int]:
    """The shape of what this rank holds."""
    return list(distributed(self, "_local_shape").held().local.shape)


attach(is_dist=is_dist, placements=property(placements), process_mesh=property(process_mesh),
       _local_value=_local_value, _local_shape=property(_local_shape))
for _class in (Partial, ProcessMesh, Replicate, Shard):
    setattr(core, _class.__name__, _class)          # `from paddle.base.core import Shard`
