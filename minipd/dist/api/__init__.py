"""Paddle's auto-parallel API: distributed tensors, and what is made of them.

    tensors.py      shard_tensor, reshard and their relatives
    local.py        from what a rank holds to a global value and back, with gradients
    regions.py      LocalLayer and local_map: a function that sees what its rank holds
    layers.py       shard_layer
    optimizer.py    shard_optimizer, and shard_scaler
    dataloader.py   shard_dataloader: batches as distributed tensors
    submeshes.py    a value on a mesh as values on parts of the mesh, and back
    context.py      the mesh that is meant where none is given
    attribute.py    DistAttr: a mesh and what splits each dimension
    annotated.py    shard_op and split: an operator, or a layer, with placements of its own
    plans.py        what tensor and sequence parallelism do to a layer
    parallelize.py  ... to the layers of a model, found by their names
    automatic.py    to_distributed: data parallelism that is chosen for the caller
"""

from minipd.dist.api.layers import shard_layer
from minipd.dist.api.local import dtensor_from_local, dtensor_to_local
from minipd.dist.api.tensors import (
    dtensor_from_fn,
    enable,
    reshard,
    shard_tensor,
    unshard_dtensor,
)

__all__ = ["dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "enable", "reshard", "shard_layer",
           "shard_tensor", "unshard_dtensor"]
