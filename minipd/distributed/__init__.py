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
    P2POp,
    ReduceOp,
    all_gather,
    all_gather_object,
    all_reduce,
    alltoall,
    alltoall_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    irecv,
    isend,
    recv,
    recv_object_list,
    reduce,
    reduce_scatter,
    scatter,
    scatter_object_list,
    send,
    send_object_list,
    wait,
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
from minipd.dist.static.dist_model import DistModel, to_static
from minipd.dist.static.strategy import Strategy
from minipd.distributed import fleet

__all__ = [
    "DistModel", "Group", "P2POp", "ParallelEnv", "ParallelMode", "Partial", "Placement", "ProcessMesh", "ReduceOp",
    "ReduceType", "Replicate", "Shard", "Strategy", "all_gather", "all_gather_object", "all_reduce", "alltoall",
    "alltoall_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group",
    "dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "fleet", "gather", "get_backend", "get_group",
    "get_rank", "get_world_size", "init_parallel_env", "irecv", "is_available", "is_initialized", "isend", "new_group",
    "recv", "recv_object_list", "reduce", "reduce_scatter", "reshard", "restart_process_group", "scatter",
    "scatter_object_list", "send", "send_object_list", "shard_layer", "shard_tensor", "shutdown_process_group",
    "to_static", "unshard_dtensor", "wait",
]
