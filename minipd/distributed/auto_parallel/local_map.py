"""`paddle.distributed.auto_parallel.local_map`."""

from minipd.dist.api.regions import local_map

__all__ = ["local_map"]
