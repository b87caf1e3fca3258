"""Distributed tensors from the outside: Paddle's `shard_tensor`, `reshard` and their relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.crossing import elsewhere
from minipd.dist.dialect import DistTensorType
from minipd.dist.interpreter import Dist
from minipd.dist.joining import current_comm
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Shard, check_placements
from minipd.dist.reshard.run import IDENTITY
from minipd.dist.rows import Reshard, ShardTensor
from minipd.dist.sharding import local_part, local_window
from minipd.dist.value import DistValue
from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe, is_traced
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.ops.creation import to_tensor

__all__ = ["dtensor_from_fn", "reshard", "shard_tensor", "unshard_dtensor"]


def enable(ctx: Any = None) -> None:
    """Put the dist interpreter into a rank's stack (default: the current rank's).  Who makes distributed tensors calls
    it."""
    ctx = current() if ctx is None else ctx
    if ctx.middle is None:
        ctx.middle = Dist(ctx.rank)
        ctx.compose()


def check_mesh(mesh: Any, what: str) -> ProcessMesh:
    """TypeError unless it is a mesh."""
    if not isinstance(mesh, ProcessMesh):
        raise TypeError(f"{what}: expected a ProcessMesh such as ProcessMesh([0, 1], dim_names=['x']), got {mesh!r}")
    return mesh


def check_started(mesh: Any, what: str) -> int:
    """This rank, if there are all ranks of the mesh.

    A process that no launcher has started is rank 0 of any mesh, as in Paddle: it has its part of tensors, and what
    needs no other rank works.  (What does finds no communicator, and raises.)
    """
    last = max(check_mesh(mesh, what).process_ids)
    current_comm()                                      # joins the others, if a launcher has started this process
    ctx = current()
    if ctx.comm is not None and last >= ctx.world_size:
        raise ValueError(f"{what}: expected a mesh of the ranks 0 to {ctx.world_size - 1} that were started, got "
                         f"{mesh.text()} of the ranks {mesh.process_ids}; start more ranks (minipd launch -n "
                         f"{last + 1}) or shrink the mesh")
    return ctx.rank


def distributed(t: Any, what: str) -> DistValue:
    """The payload of a distributed tensor; TypeError for what is none."""
    if not isinstance(t, Tensor) or not isinstance(t.payload, DistValue):
        kind = describe(t.payload) if isinstance(t, Tensor) else repr(t)
        raise TypeError(f"{what}: expected a distributed tensor, got {kind}; make one with shard_tensor")
    return t.payload


def is_dist_tensor(tensor: Any) -> bool:
    """Whether it is a distributed tensor, or one of a program that has placements."""
    if not isinstance(tensor, Tensor):
        return False
    p = tensor.payload
    return isinstance(p, DistValue) or hasattr(p, "type") and hasattr(p.type(), "placements")


def shard_tensor(data: Any, mesh: ProcessMesh, placements: Sequence[Placement], dtype: Any = None, place: Any = None,
                 stop_gradient: bool | None = None) -> Tensor:
    """A distributed tensor whose global value is `data`, which every rank passes; each keeps its part.

    The result is a leaf: it has the `stop_gradient` of `data` unless one is given, and no history; `reshard` is the
    differentiable way.  A Parameter is distributed in place: it stays the same handle, and one that was made lazily is
    filled now, with this rank's part of the values only.  A rank that is not in the mesh has nothing of the result but
    shape and placements (see `crossing`).  In a program it leaves a mark, `dist_op.shard_tensor`.
    Raises: ValueError for placements that do not fit the tensor, or a mesh that does not fit the ranks.

    >>> from minipd.dist.placements import Shard
    >>> from minipd.dist.simulate import simulate
    >>> simulate("x=2", lambda mesh: shard_tensor([3.0, 4.0, 5.0], mesh, [Shard(0)])._local_value().tolist())
    [[3.0, 4.0], [5.0]]
    """
    rank = check_started(mesh, "shard_tensor")
    t = _as_tensor(data, dtype)
    placements = check_placements(placements, mesh, t.ndim, "shard_tensor")
    if is_traced(t.payload) and not isinstance(t.payload, DistValue):
        out = t if isinstance(t, Parameter) else ShardTensor(t, mesh=mesh, placements=placements)
        out.payload.set_type(DistTensorType(tuple(t.payload.shape), t.payload.dtype, mesh, placements))
        if stop_gradient is not None:
            out.stop_gradient = out.payload.stop_gradient = stop_gradient
        return out
    lazy = isinstance(t, Parameter) and t.initialize is not None
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
    if lazy:
        t.initialize = _nothing_to_fill                 # Paddle's scripts call it now
    return out


def _nothing_to_fill(window: Any = None) -> None:
    """`Parameter.initialize` of one that `shard_tensor` has filled."""


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
    local: Any
    if isinstance(t.payload, Meta):
        local = _filled(t, mesh, placements, rank)
    else:
        local = local_part(t.values("shard_tensor"), mesh, placements, rank)
    at = mesh.coordinate(rank)
    for axis, p in enumerate(placements):               # one rank keeps the value, the others hold nothing of it
        if isinstance(p, Partial) and not p.idempotent and at[axis] != 0:
            local = np.full_like(local, IDENTITY[p.op])
    return DistValue(local, shape, local.dtype, mesh, placements)


def _filled(t: Tensor, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int) -> Any:
    """What `rank` keeps of a parameter that was made lazily: no more is ever made, where it is one block."""
    if not isinstance(t, Parameter) or t.initialize is None:
        raise ValueError(f"shard_tensor: tensor {t.name} has no values and nothing to fill it with")
    shape = tuple(t.payload.shape)
    if any(isinstance(p, Shard) and p.get_split_factor() > 1 for p in placements):
        t.initialize()
        return local_part(t.payload, mesh, placements, rank)
    window, offsets = local_window(shape, mesh, placements, rank)
    t.initialize(window=(shape, offsets, window))
    return t.payload


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The same global value under other placements, on the same mesh or on another one; differentiable.  An ordinary
    tensor, which every rank has, counts as replicated.

    To another mesh it goes block by block, from rank to rank; the ranks of both call this.
    Raises: ValueError for placements that do not fit; RuntimeError where a process is alone, and other ranks would be
    needed.

    >>> from minipd.dist.placements import Replicate
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
    if not isinstance(dist_tensor, Tensor):
        raise TypeError(f"reshard: expected a Tensor, got {dist_tensor!r}; make one with shard_tensor")
    target = check_placements(placements, check_mesh(mesh, "reshard"), dist_tensor.ndim, "reshard")
    p = dist_tensor.payload
    if isinstance(p, np.ndarray | DistValue):
        check_started(mesh, "reshard")
        enable()
        if isinstance(p, DistValue) and p.mesh != mesh and current().comm is None:
            raise RuntimeError(f"reshard: expected the ranks {sorted({*p.mesh.process_ids, *mesh.process_ids})}, "
                               f"between which {p!r} goes from one mesh to another, got a process on its own; start "
                               f"them (minipd launch -n {max(*p.mesh.process_ids, *mesh.process_ids) + 1})")
    return Reshard(dist_tensor, mesh=mesh, placements=target)


def unshard_dtensor(dist_tensor: Tensor) -> Tensor:
    """The global value as an ordinary tensor on every rank of the mesh; a leaf with the same `stop_gradient`.

    Of a Parameter it is a Parameter, with its name.
    Raises: TypeError for a tensor that is not distributed.
    """
    distributed(dist_tensor, "unshard_dtensor")
    out = (Parameter if isinstance(dist_tensor, Parameter) else Tensor)(dist_tensor.numpy())
    if isinstance(out, Parameter):
        out.name = dist_tensor.name
    out.stop_gradient = dist_tensor.stop_gradient
    return out


def dtensor_from_fn(fn: Callable, mesh: ProcessMesh, placements: Sequence[Placement], *args: Any,
                    **kwargs: Any) -> Tensor:
    """`shard_tensor(fn(*args, **kwargs), ...)`.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate
    >>> from minipd.ops.creation import ones
    >>> dtensor_from_fn(ones, parse_mesh("x=1"), [Replicate()], shape=[2]).tolist()
    [1.0, 1.0]
    """
    return shard_tensor(fn(*args, **kwargs), mesh, placements)
