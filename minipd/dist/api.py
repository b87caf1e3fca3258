"""Distributed tensors from the outside: Paddle's `shard_tensor`, `reshard` and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.crossing import elsewhere
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, check_placements
from minipd.dist.reshard.run import IDENTITY
from minipd.dist.rows import Reshard
from minipd.dist.sharding import check_local_shape, local_window
from minipd.dist.value import DistValue
from minipd.framework import dtype as dtypes
from minipd.framework.context import Kernels
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ops.creation import to_tensor

__all__ = ["dtensor_from_fn", "dtensor_from_local", "dtensor_to_local", "reshard", "shard_layer", "shard_tensor",
           "unshard_dtensor"]


def enable(ctx: Any = None) -> None:
    """Put the dist interpreter into a rank's stack (default: the current rank's).  Who makes distributed tensors calls
    it."""
    ctx = current() if ctx is None else ctx
    if ctx.middle is None:
        ctx.middle = Dist(ctx.rank)
        ctx.compose()


def _check_started(mesh: ProcessMesh, what: str) -> int:
    """This rank, if there are all ranks of the mesh."""
    ctx = current()
    if max(mesh.process_ids) >= ctx.world_size:
        raise ValueError(f"{what}: expected a mesh of the ranks 0 to {ctx.world_size - 1} that were started, got "
                         f"{mesh.text()} of the ranks {mesh.process_ids}; start more ranks (minipd launch -n "
                         f"{max(mesh.process_ids) + 1}) or shrink the mesh")
    return ctx.rank


def _check_rank(mesh: ProcessMesh, what: str) -> int:
    """This rank, if it is one of the mesh."""
    rank = _check_started(mesh, what)
    if not mesh.contains(rank):
        raise ValueError(f"{what}: expected a mesh with this rank, {rank}, got {mesh.text()} of the ranks "
                         f"{mesh.process_ids}; call it on the ranks of the mesh only")
    return rank


def _distributed(t: Any, what: str) -> DistValue:
    if not isinstance(t, Tensor) or not isinstance(t.payload, DistValue):
        kind = describe(t.payload) if isinstance(t, Tensor) else repr(t)
        raise TypeError(f"{what}: expected a distributed tensor, got {kind}; make one with shard_tensor")
    return t.payload


def shard_tensor(data: Any, mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any = None, place: Any = None,
                 stop_gradient: bool | None = None) -> Tensor:
    """A distributed tensor whose global value is `data`, which every rank passes; each keeps its part.

    The result is a leaf: it has the `stop_gradient` of `data` unless one is given, and no history; `reshard` is the
    differentiable way.  A Parameter is distributed in place: it stays the same handle, and one that was made lazily is
    filled now, with this rank's part of the values only.  A rank that is not in the mesh has nothing of the result but
    shape and placements (see `crossing`).
    Raises: ValueError for placements that do not fit the tensor, or a mesh that does not fit the ranks; TypeError while
    tracing, where completion places inputs and parameters.
    """
    rank = _check_started(mesh, "shard_tensor")
    t = _as_tensor(data, dtype)
    placements = check_placements(placements, mesh, t.ndim, "shard_tensor")
    if isinstance(t.payload, DistValue):
        value = reshard(Tensor(t.payload), mesh, placements).payload
    elif not mesh.contains(rank):
        value = elsewhere(tuple(t.payload.shape), t.payload.dtype, mesh, placements)
    else:
        value = _part(t, mesh, placements, rank)
    enable()
    out = t if isinstance(t, Parameter) else Tensor(None)
    out.stop_gradient = t.stop_gradient if stop_gradient is None else stop_gradient
    out.payload, out.storage, out.node = value, None, None
    return out


def _as_tensor(data: Any, dtype: Any) -> Tensor:
    if isinstance(data, Tensor) and (dtype is None or dtypes.to_np(dtype) == data.payload.dtype):
        return data
    if isinstance(data, Parameter):
        raise ValueError(f"shard_tensor: expected {data.name} to keep its dtype, for a Parameter is distributed in "
                         f"place, got dtype={dtype!r} for {describe(data.payload)}; make it with that dtype")
    return to_tensor(data, dtype, stop_gradient=getattr(data, "stop_gradient", True))


def _part(t: Tensor, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int) -> DistValue:
    """What `rank` keeps of a tensor that all ranks have, or could fill."""
    shape = tuple(t.payload.shape)
    window, offsets = local_window(shape, mesh, placements, rank)
    if isinstance(t.payload, Meta):
        if not isinstance(t, Parameter) or t.initialize is None:
            raise ValueError(f"shard_tensor: tensor {t.name} has no values and nothing to fill it with")
        t.initialize(window=(shape, offsets, window))
        local: Any = t.payload
    elif isinstance(t.payload, np.ndarray):
        local = np.array(t.payload[tuple(slice(o, o + n) for o, n in zip(offsets, window, strict=True))])
    else:
        raise TypeError(f"shard_tensor: expected values, got the traced tensor {describe(t.payload)}; a program is "
                        "placed by completion, which asks for the placements of its inputs and parameters, and inside "
                        "of it reshard changes them")
    at = mesh.coordinate(rank)
    for axis, p in enumerate(placements):               # one rank keeps the value, the others hold nothing of it
        if isinstance(p, Partial) and not p.idempotent and at[axis] != 0:
            local = np.full_like(local, IDENTITY[p.op])
    return DistValue(local, shape, local.dtype, mesh, placements)


def dtensor_from_local(local: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                       shape: Sequence[int] | None = None) -> Tensor:
    """A distributed tensor out of a copy of what each rank has.  The result is a leaf.

    shape: the global shape.  Without it the ranks of the mesh tell each other the shapes they have, if any dimension is
    sharded.
    Raises: ValueError if the local shape is not what the split rule gives this rank (5 over 4 is 2, 2, 1, 0).

    >>> from minipd.dist.mesh import parse_mesh
    >>> x = dtensor_from_local(to_tensor([[1.0, 2.0]]), parse_mesh("dp=1"), [Shard(0)])
    >>> x.placements, x.tolist()
    ([Shard(dim=0)], [[1.0, 2.0]])
    """
    rank = _check_rank(mesh, "dtensor_from_local")
    t = local if isinstance(local, Tensor) else to_tensor(local)
    if not isinstance(t.payload, np.ndarray):
        raise TypeError(f"dtensor_from_local: expected what this rank has, as an ordinary tensor, got {t.payload!r}")
    placements = check_placements(placements, mesh, t.ndim, "dtensor_from_local")
    if shape is None:
        whole = _global_shape(t.payload.shape, mesh, placements, rank)
    else:
        whole = tuple(shape)
        check_local_shape(t.payload.shape, whole, mesh, placements, rank, "dtensor_from_local")
    enable()
    out = Tensor(DistValue(t.payload.copy(), whole, t.payload.dtype, mesh, placements))
    out.stop_gradient = t.stop_gradient
    return out


def _global_shape(local: tuple, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int) -> tuple[int, ...]:
    """The extents that the ranks have along a sharded dimension, added up."""
    split: dict[int, list[int]] = {}                    # dimension -> the mesh axes that split it
    for axis, p in enumerate(placements):
        if isinstance(p, Shard) and mesh.sizes[axis] > 1:
            split.setdefault(p.dim, []).append(axis)
    if not split:
        return tuple(local)
    ranks = tuple(mesh.process_ids)
    shapes = dict(zip(ranks, current().comm.all_gather_object(tuple(local), ranks), strict=True))
    at, whole = mesh.coordinate(rank), list(local)
    for dim, axes in split.items():
        others = [i for i in range(mesh.ndim) if i not in axes]
        whole[dim] = sum(s[dim] for r, s in shapes.items() if all(mesh.coordinate(r)[i] == at[i] for i in others))
    for r, s in shapes.items():                         # so that all ranks raise if one must
        check_local_shape(s, whole, mesh, placements, r, "dtensor_from_local")
    return tuple(whole)


def dtensor_to_local(dist_tensor: Tensor, mesh: ProcessMesh | None = None,
                     placements: Sequence[Placement] | None = None) -> Tensor:
    """What this rank holds, as an ordinary tensor without history, for reading: in-place writes to it are refused.

    placements: reshard first (on `mesh`, default: the tensor's).
    """
    value = _distributed(dist_tensor, "dtensor_to_local")
    if placements is not None:
        value = reshard(Tensor(value), value.mesh if mesh is None else mesh, placements).payload
    if not isinstance(value.held().local, np.ndarray):
        return value.held().local.materialize("dtensor_to_local")       # raises: there are no values yet
    local = value.moved(value.placements, Kernels().run, current().rank).local
    local = local.view()
    local.flags.writeable = False           # the memory is the distributed tensor's: a write would go unnoticed there
    return Tensor(local)


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The same global value under other placements, on the same mesh or on another one; differentiable.  An ordinary
    tensor, which every rank has, counts as replicated.

    To another mesh it goes block by block, from rank to rank; the ranks of both call this.
    Raises: ValueError for placements that do not fit; NotImplementedError for another mesh inside a program.

    >>> from minipd.dist.simulate import simulate
    >>> def two_stages(mesh):
    ...     first, second = mesh[0:1], mesh[1:2]
    ...     x = shard_tensor([3.0, 4.0], first, [Replicate()], stop_gradient=False)
    ...     y = reshard(x, second, [Replicate()]) ** 2          # rank 0 knows only its shape
    ...     y.sum().backward()
    ...     return x.grad.tolist() if current().rank == 0 else y.tolist()
    >>> simulate("pp=2", two_stages)
    [[6.0, 8.0], [9.0, 16.0]]
    """
    target = check_placements(placements, mesh, dist_tensor.ndim, "reshard")
    if isinstance(dist_tensor.payload, np.ndarray | DistValue):
        _check_started(mesh, "reshard")
        enable()
    return Reshard(dist_tensor, mesh=mesh, placements=target)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The global value as an ordinary tensor on every rank; a leaf with the same `stop_gradient`."""
    out = Tensor(dist_tensor.numpy())
    out.stop_gradient = dist_tensor.stop_gradient
    return out


def dtensor_from_fn(fn: Callable, mesh: ProcessMesh, placements: Sequence[Placement], *args: Any,
                    **kwargs: Any) -> Tensor:
    """`shard_tensor(fn(*args, **kwargs), ...)`."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def shard_layer(layer: Any, process_mesh: ProcessMesh, shard_fn: Callable | None = None,
                input_fn: Callable | None = None, output_fn: Callable | None = None) -> Any:
    """Distribute a layer's parameters and buffers in place.

    shard_fn(name, sublayer, mesh) places the parameters of one sublayer (with `shard_tensor`); parameters and buffers
    that it leaves alone are replicated.  input_fn(inputs, mesh) and output_fn(outputs, mesh) become forward hooks.
    """
    replicated = [Replicate()] * process_mesh.ndim
    for name, sub in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sub, process_mesh)
        for p in sub.parameters(include_sublayers=False):
            if not isinstance(p.payload, DistValue):
                shard_tensor(p, process_mesh, replicated)
        for b in sub.buffers(include_sublayers=False):
            if not isinstance(b.payload, DistValue):
                b.payload, b.storage = shard_tensor(b, process_mesh, replicated).payload, None
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: _arguments(input_fn(inputs, process_mesh)))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def _arguments(given: Any) -> Any:
    """A list of inputs as a pre-hook returns several."""
    return tuple(given) if isinstance(given, list) else given
