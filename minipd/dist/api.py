"""Distributed tensors from the outside: Paddle's `shard_tensor`, `reshard` and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, check_placements
from minipd.dist.reshard.run import IDENTITY
from minipd.dist.rows import Reshard
from minipd.dist.sharding import check_local_shape, local_window
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ops.creation import to_tensor

__all__ = ["dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "get_rank", "get_world_size", "reshard",
           "shard_layer", "shard_tensor", "unshard_dtensor"]


def enable(ctx: Any = None) -> None:
    """Put the dist interpreter into a rank's stack (the current rank's).  Called by whoever makes distributed tensors."""
    ctx = current() if ctx is None else ctx
    if ctx.middle is None:
        ctx.middle = Dist(ctx.rank)
        ctx.compose()


def get_rank(group: Any = None) -> int:
    """The number of this rank, from 0."""
    return current().rank


def get_world_size(group: Any = None) -> int:
    """How many ranks there are."""
    return current().world_size


def _check_rank(mesh: ProcessMesh, what: str) -> int:
    ctx = current()
    if not mesh.contains(ctx.rank):
        raise ValueError(f"{what}: expected a mesh with this rank, {ctx.rank}, got {mesh!r}")
    if mesh.size > ctx.world_size:
        raise ValueError(f"{what}: expected a mesh of at most {ctx.world_size} ranks, as many as were started, got "
                         f"{mesh.text()}, which is {mesh.size}; start more ranks or shrink the mesh")
    return ctx.rank


def shard_tensor(data: Any, mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any = None, place: Any = None,
                 stop_gradient: bool | None = None) -> Tensor:
    """A distributed tensor whose global value is `data`, which every rank passes; each keeps its part.

    A Parameter is distributed in place: it stays the same handle, and one that was made lazily is filled now, with this
    rank's part of the values only.
    Raises: ValueError for placements that do not fit the tensor, or a mesh without this rank.
    """
    rank = _check_rank(mesh, "shard_tensor")
    t = data if isinstance(data, Tensor) and dtype is None else to_tensor(
        data, dtype, stop_gradient=getattr(data, "stop_gradient", True))
    if isinstance(t.payload, DistValue):
        return reshard(t, mesh, placements)
    placements = check_placements(placements, mesh, t.ndim, "shard_tensor")
    shape = tuple(t.payload.shape)
    window, offsets = local_window(shape, mesh, placements, rank)
    if isinstance(t.payload, Meta):
        if not isinstance(t, Parameter) or t.initialize is None:
            raise ValueError(f"shard_tensor: tensor {t.name} has no values and nothing to fill it with")
        t.initialize(window=(shape, offsets, window))
        local: Any = t.payload
    else:
        local = np.array(t.payload[tuple(slice(o, o + n) for o, n in zip(offsets, window, strict=True))])
    at = mesh.coordinate(rank)
    for axis, p in enumerate(placements):               # one rank keeps the value, the others hold nothing of it
        if isinstance(p, Partial) and not p.idempotent and at[axis] != 0:
            local = np.full_like(local, IDENTITY[p.op])
    enable()
    out = t if isinstance(t, Parameter) else Tensor(None)
    out.stop_gradient = t.stop_gradient if stop_gradient is None else stop_gradient
    out.payload = DistValue(local, shape, local.dtype, mesh, placements)
    return out


def dtensor_from_local(local: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                       shape: Sequence[int] | None = None) -> Tensor:
    """A distributed tensor out of what each rank has.

    shape: the global shape; without it, every sharded dimension must have the same extent on all ranks.
    Raises: ValueError if the local shape is not what the split rule gives this rank (5 over 4 is 2, 2, 1, 0).
    """
    rank = _check_rank(mesh, "dtensor_from_local")
    t = local if isinstance(local, Tensor) else to_tensor(local)
    placements = check_placements(placements, mesh, t.ndim, "dtensor_from_local")
    if shape is None:
        whole = list(t.payload.shape)
        for axis, p in enumerate(placements):
            if isinstance(p, Shard):
                whole[p.dim] *= mesh.sizes[axis]
        shape = whole
    check_local_shape(t.payload.shape, tuple(shape), mesh, placements, rank, "dtensor_from_local")
    enable()
    out = Tensor(DistValue(t.payload, tuple(shape), t.payload.dtype, mesh, placements))
    out.stop_gradient = t.stop_gradient
    return out


def dtensor_to_local(dist_tensor: Tensor, mesh: ProcessMesh | None = None,
                     placements: Sequence[Placement] | None = None) -> Tensor:
    """What this rank holds, as an ordinary tensor without history."""
    t = dist_tensor if placements is None else reshard(dist_tensor, mesh or dist_tensor.payload.mesh, placements)
    value = t.payload
    return Tensor(value.local if value.resolved is None else value.resolved.local)


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The same global value under other placements; differentiable.

    Raises: ValueError for placements that do not fit; NotImplementedError for another mesh.
    """
    target = check_placements(placements, mesh, dist_tensor.ndim, "reshard")
    if not hasattr(dist_tensor.payload, "placements") and isinstance(dist_tensor.payload, np.ndarray):
        dist_tensor = shard_tensor(dist_tensor, mesh, [Replicate()] * mesh.ndim)
    return Reshard(dist_tensor, mesh=mesh, placements=target)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The global value as an ordinary tensor on every rank."""
    out = Tensor(dist_tensor.numpy())
    out.stop_gradient = dist_tensor.stop_gradient
    return out


def dtensor_from_fn(fn: Callable, mesh: ProcessMesh, placements: Sequence[Placement], *args: Any,
                    **kwargs: Any) -> Tensor:
    """`shard_tensor(fn(*args, **kwargs), ...)`."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def shard_layer(layer: Any, process_mesh: ProcessMesh, shard_fn: Callable | None = None,
                input_fn: Callable | None = None, output_fn: Callable | None = None) -> Any:
    """Distribute a layer's parameters in place.

    shard_fn(name, sublayer, mesh) places the parameters of one sublayer (with `shard_tensor`); parameters and buffers
    that it leaves alone are replicated.  input_fn(inputs, mesh) and output_fn(outputs, mesh) become forward hooks.
    """
    for name, sub in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sub, process_mesh)
        for p in sub.parameters(include_sublayers=False):
            if not isinstance(p.payload, DistValue):
                shard_tensor(p, process_mesh, [Replicate()] * process_mesh.ndim)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, process_mesh))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer
