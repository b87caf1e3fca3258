"""What Paddle chooses by itself."""

from __future__ import annotations

from typing import Any

from minipd.dist.api.context import set_mesh
from minipd.dist.api.dataloader import shard_dataloader
from minipd.dist.api.layers import shard_layer
from minipd.dist.api.optimizer import shard_optimizer
from minipd.dist.joining import current_comm
from minipd.dist.mesh import ProcessMesh

__all__ = ["ToDistributedConfig", "enable_auto_dp", "to_distributed"]


def enable_auto_dp() -> None:
    """Data parallelism by itself: on one rank, where it changes nothing.

    Raises: NotImplementedError on several.

    >>> enable_auto_dp()
    """
    ranks = current_comm().size
    if ranks > 1:
        raise NotImplementedError(
            f"enable_auto_dp: expected one rank, got {ranks}; data parallelism that nobody asked for is not part of "
            "this version: shard_dataloader(loader, mesh, shard_dims='dp') splits batches, and shard_layer(model, "
            "mesh) replicates parameters")


class ToDistributedConfig:
    """What `to_distributed` may take into account.

    input_spec: accepted, without effect.  sequence_parallel: not part of this version.
    """

    def __init__(self) -> None:
        self.input_spec: Any = None
        self.sequence_parallel = False


def to_distributed(model: Any, optimizer: Any, dataloader: Any, device_num: int, node_num: int | None = 1,
                   config: ToDistributedConfig | None = None) -> tuple[Any, Any, Any]:
    """Model, optimizer and loader for `device_num` ranks on each of `node_num` hosts: data parallel, on a mesh that is
    set for `get_mesh`.

    (Paddle also splits layers that it knows; here that is for the caller to say: `parallelize`.)
    Raises: ValueError for numbers that are not positive, or more ranks than were started; NotImplementedError for
    sequence parallelism.

    >>> from minipd.framework.rank import current
    >>> from minipd.io import DataLoader, TensorDataset
    >>> from minipd.nn import Linear
    >>> from minipd.ops.creation import ones
    >>> from minipd.optimizer import SGD
    >>> layer = Linear(2, 2)
    >>> model, sgd, loader = to_distributed(layer, SGD(0.1, parameters=layer.parameters()),
    ...                                     DataLoader(TensorDataset([ones([4, 2])]), batch_size=2), device_num=1)
    >>> model.weight.placements, [x.placements for x, in loader]
    ([Replicate()], [[Shard(dim=0)], [Shard(dim=0)]])
    >>> current().mesh = None
    """
    if config is not None and config.sequence_parallel:
        raise NotImplementedError("to_distributed: expected data parallelism, got a config with sequence_parallel=True"
                                  "; use parallelize with SequenceParallelBegin() and SequenceParallelEnd()")
    hosts = 1 if node_num is None else node_num
    if device_num < 1 or hosts < 1:
        raise ValueError(f"to_distributed: expected positive numbers, got device_num={device_num!r} and "
                         f"node_num={node_num!r}")
    mesh = ProcessMesh(list(range(device_num * hosts)), ["dp"])
    sharded = shard_dataloader(dataloader, mesh, shard_dims="dp")
    set_mesh(mesh)
    return shard_layer(model, mesh), shard_optimizer(optimizer), sharded
