"""`paddle.distributed.auto_parallel`."""

from minipd.dist.api.annotated import shard_op
from minipd.dist.api.context import create_mesh, get_mesh, set_mesh
from minipd.dist.mesh import ProcessMesh
from minipd.distributed.auto_parallel import (
    api,
    high_level_api,
    intermediate,
    local_layer,
    local_map,
    placement_type,
    process_mesh,
    static,
)

__all__ = ["ProcessMesh", "api", "create_mesh", "get_mesh", "high_level_api", "intermediate", "local_layer",
           "local_map", "placement_type", "process_mesh", "set_mesh", "shard_op", "static"]
