"""What Paddle chooses by itself, and this version leaves to the caller, by name."""

from __future__ import annotations

from typing import Any

from minipd.dist.group import current_comm

__all__ = ["enable_auto_dp", "to_distributed"]


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


def to_distributed(model: Any, optimizer: Any, dataloader: Any, device_num: int, node_num: int | None = 1,
                   config: Any = None) -> Any:
    """Raises: NotImplementedError: which axes a mesh should have is for the caller to say."""
    raise NotImplementedError(
        "to_distributed: expected the caller to choose a mesh and plans, which this version does not find by itself; "
        "use parallelize(model, optimizer, mesh, config) and shard_dataloader")
