"""`paddle.distributed.auto_parallel.api`."""

from minipd.dist.api.attribute import DistAttr
from minipd.dist.api.dataloader import ShardDataloader, shard_dataloader
from minipd.dist.api.layers import shard_layer
from minipd.dist.api.local import dtensor_from_local, dtensor_to_local
from minipd.dist.api.optimizer import ShardingStage1, ShardingStage2, ShardingStage3, shard_optimizer, shard_scaler
from minipd.dist.api.submeshes import moe_global_mesh_tensor, moe_sub_mesh_tensors
from minipd.dist.api.tensors import dtensor_from_fn, is_dist_tensor, reshard, shard_tensor, unshard_dtensor

__all__ = ["DistAttr", "ShardDataloader", "ShardingStage1", "ShardingStage2", "ShardingStage3", "dtensor_from_fn",
           "dtensor_from_local", "dtensor_to_local", "is_dist_tensor", "moe_global_mesh_tensor",
           "moe_sub_mesh_tensors", "reshard", "shard_dataloader", "shard_layer", "shard_optimizer", "shard_scaler",
           "shard_tensor", "unshard_dtensor"]
