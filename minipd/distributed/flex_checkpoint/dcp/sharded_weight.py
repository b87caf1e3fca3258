"""`paddle.distributed.flex_checkpoint.dcp.sharded_weight`."""

from minipd.dist.checkpoint.sharded_weight import (
    ShardedStateDict,
    ShardedWeight,
    build_sharded_state_dict,
    shard_weight,
)

__all__ = ["ShardedStateDict", "ShardedWeight", "build_sharded_state_dict", "shard_weight"]
