"""Paddle's names for distribution: `import minipd.distributed as dist`."""

from minipd.dist.api import (
    dtensor_from_fn,
    dtensor_from_local,
    dtensor_to_local,
    get_rank,
    get_world_size,
    reshard,
    shard_layer,
    shard_tensor,
    unshard_dtensor,
)
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, ReduceType, Replicate, Shard

__all__ = [
    "Partial", "Placement", "ProcessMesh", "ReduceType", "Replicate", "Shard", "dtensor_from_fn", "dtensor_from_local",
    "dtensor_to_local", "get_rank", "get_world_size", "reshard", "shard_layer", "shard_tensor", "unshard_dtensor",
]
