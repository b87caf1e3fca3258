"""`paddle.distributed.auto_parallel.placement_type`."""

from minipd.dist.placements import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
