"""`paddle.distributed.auto_parallel.intermediate.pipeline_parallel`."""

from minipd.dist.api.plans import SplitPoint

__all__ = ["SplitPoint"]
