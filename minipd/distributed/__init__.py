"""Paddle's names for distribution: `import minipd.distributed as dist`."""

from minipd.dist.api import (
    dtensor_from_fn,
    dtensor_from_local,
    dtensor_to_local,
    reshard,
    shard_layer,
    shard_tensor,
    unshard_dtensor,
)
from minipd.dist.collective import (
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    alltoall,
    barrier,
    broadcast,
    recv,
    reduce_scatter,
    send,
)
from minipd.dist.group import (
    Group,
    destroy_process_group,
    get_backend,
    get_group,
    get_rank,
    get_world_size,
    init_parallel_env,
    is_available,
    is_initialized,
    new_group,
    restart_process_group,
    shutdown_process_group,
)
from minipd.dist.mesh import ProcessMesh
from minipd.dist.parallel_env import ParallelEnv, ParallelMode
from minipd.dist.placements import Partial, Placement, ReduceType, Replicate, Shard
from minipd.distributed import fleet

__all__ = [
    "Group", "ParallelEnv", "ParallelMode", "Partial", "Placement", "ProcessMesh", "ReduceOp", "ReduceType",
    "Replicate", "Shard", "all_gather", "all_gather_object", "all_reduce", "alltoall", "barrier", "broadcast",
    "destroy_process_group", "dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "fleet", "get_backend",
    "get_group", "get_rank", "get_world_size", "init_parallel_env", "is_available", "is_initialized", "new_group",
    "recv", "reduce_scatter", "reshard", "restart_process_group", "send", "shard_layer", "shard_tensor",
    "shutdown_process_group", "unshard_dtensor",
]
