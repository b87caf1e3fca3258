"""Paddle's auto-parallel API: distributed tensors, and what is made of them.

    tensors.py      shard_tensor, reshard and their relatives
    local.py        from what a rank holds to a global value and back, with gradients
    layers.py       shard_layer
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
