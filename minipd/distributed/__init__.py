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
from minipd.dist.api.annotated import split
from minipd.dist.api.attribute import DistAttr
from minipd.dist.api.automatic import enable_auto_dp, to_distributed
from minipd.dist.api.context import get_mesh, set_mesh
from minipd.dist.api.dataloader import ShardDataloader, shard_dataloader
from minipd.dist.api.optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer, shard_scaler
from minipd.dist.api.parallelize import parallelize
from minipd.dist.api.plans import (
    ColWiseParallel,
    ContextParallel,
    ConvParallel,
    PrepareContextParallel,
    PrepareLayerInput,
    PrepareLayerOutput,
    RowWiseParallel,
    SequenceParallelBegin,
    SequenceParallelDisable,
    SequenceParallelEnable,
    SequenceParallelEnd,
    SplitPoint,
)
from minipd.dist.api.regions import LocalLayer, local_map
from minipd.dist.api.submeshes import moe_global_mesh_tensor, moe_sub_mesh_tensors
from minipd.dist.checkpoint import load_merged_state_dict, load_state_dict, save_state_dict
from minipd.dist.checkpoint.sharded_weight import (
    ShardedStateDict,
    ShardedWeight,
    build_sharded_state_dict,
    shard_weight,
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
from minipd.dist.gloo import gloo_barrier, gloo_init_parallel_env, gloo_release
from minipd.dist.group import (
    Group,
    create_nccl_config,
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
from minipd.dist.spawn import spawn
from minipd.dist.static.dist_model import DistModel, to_static
from minipd.dist.static.strategy import Strategy
from minipd.distributed import auto_parallel, communication, fleet, flex_checkpoint
from minipd.distributed.communication import stream
from minipd.distributed.launch.main import launch

__all__ = [
    "ColWiseParallel", "ContextParallel", "ConvParallel", "DistAttr", "DistModel", "Group", "LocalLayer", "P2POp",
    "ParallelEnv", "ParallelMode", "Partial", "Placement", "PrepareContextParallel", "PrepareLayerInput",
    "PrepareLayerOutput", "ProcessMesh", "ReduceOp", "ReduceType", "Replicate", "RowWiseParallel",
    "SequenceParallelBegin", "SequenceParallelDisable", "SequenceParallelEnable", "SequenceParallelEnd", "Shard",
    "ShardDataloader", "ShardedStateDict", "ShardedWeight", "ShardingStage1", "ShardingStage2", "ShardingStage3",
    "SplitPoint", "Strategy", "all_gather", "all_gather_object", "all_reduce", "alltoall", "alltoall_single",
    "auto_parallel", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list", "build_sharded_state_dict",
    "communication", "create_nccl_config", "destroy_process_group", "dtensor_from_fn", "dtensor_from_local",
    "dtensor_to_local", "enable_auto_dp", "fleet", "flex_checkpoint", "gather", "get_backend", "get_group", "get_mesh",
    "get_rank", "get_world_size", "gloo_barrier", "gloo_init_parallel_env", "gloo_release", "init_parallel_env",
    "irecv", "is_available", "is_initialized", "isend", "launch", "load_merged_state_dict", "load_state_dict",
    "local_map", "moe_global_mesh_tensor", "moe_sub_mesh_tensors", "new_group", "parallelize", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reshard", "restart_process_group", "save_state_dict", "scatter",
    "scatter_object_list", "send", "send_object_list", "set_mesh", "shard_dataloader", "shard_layer",
    "shard_optimizer", "shard_scaler", "shard_tensor", "shard_weight", "shutdown_process_group", "spawn", "split",
    "stream", "to_distributed", "to_static", "unshard_dtensor", "wait",
]
