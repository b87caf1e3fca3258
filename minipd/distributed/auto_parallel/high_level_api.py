"""`paddle.distributed.auto_parallel.high_level_api`."""

from minipd.dist.api.automatic import ToDistributedConfig, to_distributed

__all__ = ["ToDistributedConfig", "to_distributed"]
