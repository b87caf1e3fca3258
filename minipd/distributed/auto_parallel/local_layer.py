"""`paddle.distributed.auto_parallel.local_layer`."""

from minipd.dist.api.regions import LocalLayer

__all__ = ["LocalLayer"]
