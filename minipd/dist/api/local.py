"""From what a rank holds to the global value, and back, with gradients.

Between the two, nothing is communicated: a rank's array is taken for its part of a global value, as the placements say,
or a global value is looked at as the part that this rank has.  The gradients go the same way back:

    dtensor_from_local      the gradient of the global value, placed as that (a Partial value's is replicated: each term
                            of a sum has the gradient of the sum), as this rank holds it
    dtensor_to_local        the ranks' gradients are what they hold of the global one.  How it is placed cannot be seen
                            from one rank, so `placements` says it.  Without it: as the value; of a Partial one,
                            replicated.  Where all ranks hold the same and each uses it for something else, the
                            gradients are terms of a sum, Partial().
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.autograd.py_layer import PyLayer, PyLayerContext
from minipd.dist.api.tensors import check_started, distributed, enable
from minipd.dist.crossing import elsewhere
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard, check_placements, whole
from minipd.dist.sharding import check_local_shape, local_shape
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels
from minipd.framework.meta import describe, is_traced
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ops.creation import to_tensor

__all__ = ["dtensor_from_local", "dtensor_to_local"]


def check_member(mesh: ProcessMesh, what: str) -> int:
    """This rank, if it is one of the mesh."""
    rank = check_started(mesh, what)
    if not mesh.contains(rank):
        raise ValueError(f"{what}: expected a mesh with this rank, {rank}, got {mesh.text()} of the ranks "
                         f"{mesh.process_ids}; call it on the ranks of the mesh only")
    return rank


def is_in_program(x: Any) -> bool:
    """Whether it is a tensor of a program that is being traced."""
    return isinstance(x, Tensor) and is_traced(x.payload) and not isinstance(x.payload, DistValue)


def refuse_unplaced(x: Any, what: str) -> None:
    """NotImplementedError for a tensor of a program that will be distributed when it is complete: nobody knows yet what
    a rank will hold of it."""
    if is_in_program(x) and not getattr(current().ground, "knows_places", False):
        raise NotImplementedError(f"{what}: expected a trace that knows where its values are, got "
                                  f"{describe(x.payload)} of one that has global values only; trace with "
                                  "dist.to_static, or paddle.jit.to_static and distributed inputs, or run eagerly")


def dtensor_from_local(local_tensor: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                       shape: Sequence[int] | None = None) -> Tensor:
    """A distributed tensor out of a copy of what each rank has; differentiable.

    shape: the global shape.  Without it (Paddle has no such argument) the ranks of the mesh tell each other the shapes
    they have, if any dimension is sharded.  A process that no launcher has started takes the others to have as much.
    Raises: ValueError if the local shape is not what the split rule gives this rank (5 over 4 is 2, 2, 1, 0).

    >>> from minipd.dist.mesh import parse_mesh
    >>> x = dtensor_from_local(to_tensor([[1.0, 2.0]]), parse_mesh("dp=1"), [Shard(0)])
    >>> x.placements, x.tolist()
    ([Shard(dim=0)], [[1.0, 2.0]])
    """
    refuse_unplaced(local_tensor, "dtensor_from_local")
    if is_in_program(local_tensor):
        return _from_local_in_program(local_tensor, mesh, placements, shape)
    if is_followed(local_tensor) and not mesh.contains(check_started(mesh, "dtensor_from_local")):
        placed = check_placements(placements, mesh, local_tensor.ndim, "dtensor_from_local")
        full = _as_many(local_tensor.payload.shape, mesh, placed) if shape is None else tuple(shape)
        return _FromLocal.apply(local_tensor, mesh, placed, full)
    rank = check_member(mesh, "dtensor_from_local")
    t = local_tensor if isinstance(local_tensor, Tensor) else to_tensor(local_tensor)
    if not isinstance(t.payload, np.ndarray):
        raise TypeError(f"dtensor_from_local: expected what this rank has, as an ordinary tensor, got {t.payload!r}")
    placed = check_placements(placements, mesh, t.ndim, "dtensor_from_local")
    if shape is None:
        full = _global_shape(t.payload.shape, mesh, placed, rank)
    else:
        full = tuple(shape)
        check_local_shape(t.payload.shape, full, mesh, placed, rank, "dtensor_from_local")
    enable()
    return _FromLocal.apply(t, mesh, placed, full)


def _global_shape(local: tuple, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int) -> tuple[int, ...]:
    """The extents that the ranks have along a sharded dimension, added up."""
    split: dict[int, list[int]] = {}                    # dimension -> the mesh axes that split it
    for axis, p in enumerate(placements):
        if isinstance(p, Shard) and mesh.sizes[axis] > 1:
            split.setdefault(p.dim, []).append(axis)
    if not split:
        return tuple(local)
    ranks = tuple(mesh.process_ids)
    comm = current().comm
    told = [tuple(local)] * len(ranks) if comm is None else comm.all_gather_object(tuple(local), ranks)
    shapes = dict(zip(ranks, told, strict=True))
    at, full = mesh.coordinate(rank), list(local)
    for dim, axes in split.items():
        others = [i for i in range(mesh.ndim) if i not in axes]
        full[dim] = sum(s[dim] for r, s in shapes.items() if all(mesh.coordinate(r)[i] == at[i] for i in others))
    for r, s in shapes.items():                         # so that all ranks raise if one must
        check_local_shape(s, full, mesh, placements, r, "dtensor_from_local")
    return tuple(full)


def dtensor_to_local(dist_tensor: Tensor, mesh: ProcessMesh | None = None,
                     placements: Sequence[Placement] | None = None) -> Tensor:
    """What this rank holds, as an ordinary tensor, for reading: in-place writes to it are refused.  Differentiable.

    mesh, placements: those of the gradient (see above).
    On a rank outside of the tensor's mesh the result has a shape and no values: what is computed with it, and made a
    distributed tensor again, is known there by its shape.
    Raises: TypeError for a tensor that is not distributed.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.placements import Partial, Replicate
    >>> from minipd.dist.simulate import simulate
    >>> def weighted(mesh):
    ...     x = shard_tensor([1.0, 2.0], mesh, [Replicate()], stop_gradient=False)
    ...     (dtensor_to_local(x, mesh, [Partial()]) * (current().rank + 1.0)).sum().backward()
    ...     return x.grad.tolist()                          # 1 + 2, of both ranks
    >>> simulate("x=2", weighted)
    [[3.0, 3.0], [3.0, 3.0]]
    """
    refuse_unplaced(dist_tensor, "dtensor_to_local")
    value = dist_tensor.payload if is_in_program(dist_tensor) and hasattr(dist_tensor.payload, "placements") else \
        distributed(dist_tensor, "dtensor_to_local")
    if placements is None:
        on, placed = value.mesh, whole(value.placements)
    else:
        on = value.mesh if mesh is None else mesh
        if value.mesh.contains(current().rank):
            check_member(on, "dtensor_to_local")
        placed = check_placements(placements, on, value.ndim, "dtensor_to_local")
    if is_in_program(dist_tensor):
        rank = current().rank
        shape = local_shape(value.shape, value.mesh, value.placements, rank) if value.mesh.contains(rank) else \
            _shape_elsewhere(value)
        return ROWS["dtensor_to_local"](dist_tensor, shape=shape, mesh=on, placements=placed)
    return _ToLocal.apply(dist_tensor, on, placed)


def _from_local_in_program(t: Tensor, mesh: ProcessMesh, placements: Sequence[Placement],
                           shape: Sequence[int] | None) -> Tensor:
    """Every rank traces what it will run itself, so the ranks tell each other their shapes, as eagerly."""
    if hasattr(t.payload, "placements"):
        raise TypeError(f"dtensor_from_local: expected what this rank has, as an ordinary tensor, got {t.payload!r}")
    placed, rank = check_placements(placements, mesh, t.ndim, "dtensor_from_local"), current().rank
    local = tuple(t.payload.shape)
    if not mesh.contains(rank):
        full = _as_many(local, mesh, placed) if shape is None else tuple(shape)
    elif shape is None:
        full = _global_shape(local, mesh, placed, rank)
    else:
        full = tuple(shape)
        check_local_shape(local, full, mesh, placed, rank, "dtensor_from_local")
    return ROWS["dtensor_from_local"](t, mesh=mesh, placements=placed, shape=full)


def local_values(value: DistValue, asked: str) -> np.ndarray:
    """What this rank holds of a value, not to be written."""
    if not isinstance(value.held().local, np.ndarray):
        return value.held().local.materialize(asked)                    # raises: there are no values yet
    local = value.moved(value.placements, Kernels().run, current().rank).local
    local = local.view()
    local.flags.writeable = False           # the memory is the distributed tensor's: a write would go unnoticed there
    return local


# ------------------------------------------------------------------------------------ ranks outside of a value's mesh
def is_followed(x: Any) -> bool:
    """Whether it stands for what a rank of another mesh holds: see `_followed`."""
    return isinstance(x, Tensor) and isinstance(x.payload, DistValue) and x.payload.mesh.size == 1 and (
        not x.payload.mesh.contains(current().rank))


def _shape_elsewhere(value: Any) -> tuple[int, ...]:
    """What the ranks of a mesh without this rank hold of a value.

    Raises: NotImplementedError where ranks of the mesh hold blocks of different shapes.
    """
    shapes = {local_shape(value.shape, value.mesh, value.placements, r) for r in value.mesh.process_ids}
    if len(shapes) > 1:
        raise NotImplementedError(
            f"dtensor_to_local: expected equal parts of a tensor on a mesh without this rank, {current().rank}, which "
            f"follows with shapes what is computed there, got {value!r} on {value.mesh.text()} of the ranks "
            f"{value.mesh.process_ids}; pad the tensor, or call this on the ranks of its mesh only")
    return shapes.pop()


def _followed(value: DistValue) -> Tensor:
    """What the first rank of the value's mesh holds, as a value on that rank alone: on a rank outside, which follows
    what the others compute with shapes."""
    shape = _shape_elsewhere(value)
    first = ProcessMesh(value.mesh.process_ids[:1], ["rank"])
    return Tensor(elsewhere(shape, value.dtype, first, (Replicate(),)))


def _as_many(local: tuple[int, ...], mesh: ProcessMesh, placements: tuple[Placement, ...]) -> tuple[int, ...]:
    """The global shape if all ranks have parts of one shape."""
    full = list(local)
    for p, size in zip(placements, mesh.sizes, strict=True):
        if isinstance(p, Shard):
            full[p.dim] *= size
    return tuple(full)


class _FromLocal(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, t: Tensor, mesh: ProcessMesh, placements: tuple[Placement, ...],
                shape: tuple[int, ...]) -> Tensor:
        if is_followed(t):
            return Tensor(elsewhere(shape, t.payload.dtype, mesh, placements))
        return Tensor(DistValue(t.payload.copy(), shape, t.payload.dtype, mesh, placements))

    @staticmethod
    def backward(ctx: PyLayerContext, g: Tensor) -> Tensor:
        return dtensor_to_local(g) if isinstance(g.payload, DistValue) else g


class _ToLocal(PyLayer):
    @staticmethod
    def forward(ctx: PyLayerContext, x: Tensor, mesh: ProcessMesh, placements: tuple[Placement, ...]) -> Tensor:
        ctx.of = mesh, placements, tuple(x.payload.shape)               # type: ignore[attr-defined]
        if not x.payload.mesh.contains(current().rank):
            return _followed(x.payload)
        return Tensor(local_values(x.payload, "dtensor_to_local"))

    @staticmethod
    def backward(ctx: PyLayerContext, g: Tensor) -> Tensor:
        mesh, placements, shape = ctx.of                                # type: ignore[attr-defined]
        if not mesh.contains(current().rank):
            return Tensor(elsewhere(shape, g.payload.dtype, mesh, placements))
        return dtensor_from_local(g, mesh, placements, shape)
