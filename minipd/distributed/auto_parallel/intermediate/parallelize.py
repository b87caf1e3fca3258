"""`paddle.distributed.auto_parallel.intermediate.parallelize`."""

from minipd.dist.api.parallelize import parallelize, parallelize_model, parallelize_optimizer

__all__ = ["parallelize", "parallelize_model", "parallelize_optimizer"]
