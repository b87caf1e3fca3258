"""`paddle.distributed.auto_parallel.intermediate.context_parallel`."""

from minipd.dist.api.plans import ContextParallel, PrepareContextParallel

__all__ = ["ContextParallel", "PrepareContextParallel"]
