"""`paddle.distributed.auto_parallel.intermediate`."""

from minipd.distributed.auto_parallel.intermediate import (
    context_parallel,
    parallelize,
    pipeline_parallel,
    tensor_parallel,
)

__all__ = ["context_parallel", "parallelize", "pipeline_parallel", "tensor_parallel"]
