"""Layers with distributed parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.api.tensors import check_mesh, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate
from minipd.dist.value import DistValue

__all__ = ["shard_layer"]


def shard_layer(layer: Any, process_mesh: ProcessMesh, shard_fn: Callable | None = None,
                input_fn: Callable | None = None, output_fn: Callable | None = None) -> Any:
    """Distribute a layer's parameters and buffers in place.

    shard_fn(name, sublayer, mesh) places the parameters of one sublayer (with `shard_tensor`); parameters and buffers
    that it leaves alone are replicated.  input_fn(inputs, mesh) and output_fn(outputs, mesh) become forward hooks.

    Raises: TypeError for what is no layer or no mesh.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Shard
    >>> from minipd.nn import Linear
    >>> def by_columns(name, sublayer, mesh):
    ...     shard_tensor(sublayer.weight, mesh, [Shard(1)])
    >>> layer = shard_layer(Linear(4, 4), parse_mesh("x=1"), by_columns)
    >>> layer.weight.placements, layer.bias.placements
    ([Shard(dim=1)], [Replicate()])
    """
    replicated = [Replicate()] * check_mesh(process_mesh, "shard_layer").ndim
    if not hasattr(layer, "named_sublayers"):
        raise TypeError(f"shard_layer: expected a layer, got {layer!r}")
    for name, sub in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sub, process_mesh)
        replicate_rest(sub, process_mesh, replicated)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: _arguments(input_fn(inputs, process_mesh)))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def replicate_rest(layer: Any, mesh: ProcessMesh, replicated: list) -> None:
    """Replicate what a layer itself holds and nobody has distributed yet."""
    for p in layer.parameters(include_sublayers=False):
        if not isinstance(p.payload, DistValue):
            shard_tensor(p, mesh, replicated)
    for b in layer.buffers(include_sublayers=False):
        if not isinstance(b.payload, DistValue):
            b.payload, b.storage = shard_tensor(b, mesh, replicated).payload, None


def _arguments(given: Any) -> Any:
    """A list of inputs as a pre-hook returns several."""
    return tuple(given) if isinstance(given, list) else given
