"""`paddle.distributed.auto_parallel.intermediate.tensor_parallel`."""

from minipd.dist.api.plans import (
    ColWiseParallel,
    ConvParallel,
    PlanBase,
    PrepareLayerInput,
    PrepareLayerOutput,
    RowWiseParallel,
    SequenceParallelBegin,
    SequenceParallelDisable,
    SequenceParallelEnable,
    SequenceParallelEnd,
)

__all__ = ["ColWiseParallel", "ConvParallel", "PlanBase", "PrepareLayerInput", "PrepareLayerOutput",
           "RowWiseParallel", "SequenceParallelBegin", "SequenceParallelDisable", "SequenceParallelEnable",
           "SequenceParallelEnd"]
