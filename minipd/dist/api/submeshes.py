"""One value on a mesh as values on parts of the mesh, and back (Paddle has it for mixtures of experts).

Nothing is communicated: what a rank holds is its part of the global value, and of the value on the part of the mesh
that it belongs to.  Of the values on other parts, it has shape and placements (see `crossing`).

    mesh  pp=2,dp=2, of the ranks 0 to 3       x: f32[8_pp, 4_dp]
    parts dp=2 of the ranks 0, 1               f32[4, 4_dp]
          dp=2 of the ranks 2, 3               f32[4, 4_dp]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.autograd.py_layer import PyLayer, PyLayerContext
from minipd.dist.api.local import local_values
from minipd.dist.api.tensors import check_mesh, check_started, distributed, enable, reshard
from minipd.dist.crossing import elsewhere
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard, check_placements, whole
from minipd.dist.sharding import check_local_shape, chunk_sizes
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor

__all__ = ["moe_global_mesh_tensor", "moe_sub_mesh_tensors", "split_mesh"]


def split_mesh(global_mesh: ProcessMesh, sub_mesh_dim: int) -> list[ProcessMesh]:
    """The parts of a mesh along one of its axes, each with that axis at size 1.

    >>> from minipd.dist.mesh import parse_mesh
    >>> split_mesh(parse_mesh("pp=2,dp=2"), 0)[1]
    shape [1, 2], process_ids [2, 3], dim_names ['pp', 'dp']
    """
    axis = check_mesh(global_mesh, "split_mesh").axis(sub_mesh_dim)
    return [ProcessMesh(part, global_mesh.dim_names)
            for part in np.split(global_mesh.mesh, global_mesh.sizes[axis], axis)]


class _Parts:
    """Which parts there are, and what of a value of this global shape each has."""

    def __init__(self, mesh: ProcessMesh, dim: int, placements: Sequence[Placement], shape: tuple, what: str):
        self.mesh, self.axis = mesh, mesh.axis(dim)
        self.placements = check_placements(placements, mesh, len(shape), what)
        self.meshes = split_mesh(mesh, self.axis)
        self.inside = (*self.placements[:self.axis], Replicate(), *self.placements[self.axis + 1:])
        self.shape = shape
        p, self.shapes = self.placements[self.axis], [shape] * len(self.meshes)
        if isinstance(p, Shard):
            others = [q for q in self.inside if isinstance(q, Shard) and q.dim == p.dim]
            if others:
                raise ValueError(f"{what}: expected the dimension {p.dim} to be split by the axis "
                                 f"{mesh.names[self.axis]} only, got {list(self.placements)}")
            sizes = chunk_sizes(shape[p.dim], len(self.meshes))
            self.shapes = [(*shape[:p.dim], n, *shape[p.dim + 1:]) for n in sizes]

    def mine(self, rank: int) -> int:
        """The part that a rank belongs to; -1 for none."""
        return next((i for i, m in enumerate(self.meshes) if m.contains(rank)), -1)

    def of_part(self, i: int, local: Any, dtype: Any, placements: tuple[Placement, ...]) -> Tensor:
        """The value on part i, of which this rank has `local`, None if nothing."""
        if local is None:
            return Tensor(elsewhere(self.shapes[i], dtype, self.meshes[i], placements))
        return Tensor(DistValue(local, self.shapes[i], dtype, self.meshes[i], placements))

    def of_whole(self, local: Any, dtype: Any, placements: tuple[Placement, ...]) -> Tensor:
        if local is None:
            return Tensor(elsewhere(self.shape, dtype, self.mesh, placements))
        return Tensor(DistValue(local, self.shape, dtype, self.mesh, placements))


def moe_global_mesh_tensor(local_tensor_list: Sequence[Tensor], mesh: ProcessMesh, placements: Sequence[Placement],
                           local_mesh_dim: int = -1) -> Tensor:
    """The value on `mesh` of which the tensors are what its parts along an axis have; differentiable.

    local_tensor_list: one tensor on each part, in order.  placements: of the result; along the axis, Shard(d) puts the
    parts' values one after the other, Partial() adds them up.
    Raises: ValueError for another number of tensors, or shapes that do not fit the split rule.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.simulate import simulate
    >>> def run(mesh):
    ...     parts = [shard_tensor([float(i)], part, [Replicate()]) for i, part in enumerate(split_mesh(mesh, 0))]
    ...     return moe_global_mesh_tensor(parts, mesh, [Shard(0)], 0).tolist()
    >>> simulate("x=2", run)
    [[0.0, 1.0], [0.0, 1.0]]
    """
    what = "moe_global_mesh_tensor"
    check_started(mesh, what)
    axis = mesh.axis(local_mesh_dim)
    tensors = list(local_tensor_list)
    if len(tensors) != mesh.sizes[axis]:
        raise ValueError(f"{what}: expected {mesh.sizes[axis]} tensors, one for each part of {mesh.text()} along "
                         f"{mesh.names[axis]}, got {len(tensors)}")
    values = [distributed(t, what) for t in tensors]
    placed = check_placements(placements, mesh, values[0].ndim, what)
    shape, p = list(values[0].shape), placed[axis]
    if isinstance(p, Shard):
        shape[p.dim] = sum(v.shape[p.dim] for v in values)
    parts = _Parts(mesh, axis, placed, tuple(shape), what)
    for i, v in enumerate(values):
        if v.shape != parts.shapes[i]:
            check_local_shape(v.shape, parts.shape, ProcessMesh(list(range(mesh.sizes[axis])), [mesh.names[axis]]),
                              [p], i, what)
    same = [t if (v.mesh, v.placements) == (m, parts.inside) else reshard(t, m, parts.inside)
            for t, v, m in zip(tensors, values, parts.meshes, strict=True)]
    enable()
    return _Joined.apply(*same, parts)


def moe_sub_mesh_tensors(dist_tensor: Tensor, global_mesh: ProcessMesh, local_mesh_dim: int,
                         global_placements: Sequence[Placement]) -> list[Tensor]:
    """What the parts of a mesh along an axis have of a value, one tensor on each part; differentiable.

    global_placements: those that the tensor is brought to first.  Along the axis, Shard(d) gives each part its chunk,
    Replicate() everything.

    >>> from minipd.dist.api.tensors import shard_tensor
    >>> from minipd.dist.simulate import simulate
    >>> def run(mesh):
    ...     parts = moe_sub_mesh_tensors(shard_tensor([1.0, 2.0], mesh, [Shard(0)]), mesh, 0, [Shard(0)])
    ...     return parts[current().rank].tolist()
    >>> simulate("x=2", run)
    [[1.0], [2.0]]
    """
    what = "moe_sub_mesh_tensors"
    check_started(global_mesh, what)
    value = distributed(dist_tensor, what)
    parts = _Parts(global_mesh, local_mesh_dim, global_placements, value.shape, what)
    if (value.mesh, value.placements) != (parts.mesh, parts.placements):
        dist_tensor = reshard(dist_tensor, parts.mesh, parts.placements)
    return list(_Parted.apply(dist_tensor, parts))


def _held(t: Tensor, asked: str) -> Any:
    """What this rank holds, in memory of its own; None if nothing."""
    value = t.payload
    if not isinstance(value, DistValue):
        raise TypeError(f"{asked}: expected a distributed gradient, got {value!r}")
    return np.array(local_values(value, asked)) if value.mesh.contains(current().rank) else None


class _Joined(PyLayer):
    """moe_global_mesh_tensor.  A gradient that parts have alike, or as terms of a sum, is a part's own."""

    @staticmethod
    def forward(ctx: PyLayerContext, *args: Any) -> Tensor:
        *tensors, parts = args
        mine = parts.mine(current().rank)
        ctx.parts = parts                                               # type: ignore[attr-defined]
        local = None if mine < 0 else _held(tensors[mine], "moe_global_mesh_tensor")
        return parts.of_whole(local, tensors[0].payload.dtype, parts.placements)

    @staticmethod
    def backward(ctx: PyLayerContext, g: Tensor) -> list[Tensor]:
        parts = ctx.parts                                               # type: ignore[attr-defined]
        g = reshard(g, parts.mesh, whole(parts.placements))
        return list(_Parted.apply(g, _as(parts, whole(parts.placements))))


class _Parted(PyLayer):
    """moe_sub_mesh_tensors.  What all parts have has a gradient that is the sum of the parts'."""

    @staticmethod
    def forward(ctx: PyLayerContext, x: Tensor, parts: _Parts) -> tuple[Tensor, ...]:
        ctx.parts = parts                                               # type: ignore[attr-defined]
        mine = parts.mine(current().rank)
        local = None if mine < 0 else _held(x, "moe_sub_mesh_tensors")
        return tuple(parts.of_part(i, local if i == mine else None, x.payload.dtype, parts.inside)
                     for i in range(len(parts.meshes)))

    @staticmethod
    def backward(ctx: PyLayerContext, *gs: Tensor) -> Tensor:
        parts = ctx.parts                                               # type: ignore[attr-defined]
        inside = whole(parts.inside)
        p = parts.placements[parts.axis]
        placed = (*inside[:parts.axis], p if isinstance(p, Shard) else Partial(), *inside[parts.axis + 1:])
        gs = tuple(reshard(g, m, inside) for g, m in zip(gs, parts.meshes, strict=True))
        return _Joined.apply(*gs, _as(parts, placed))


def _as(parts: _Parts, placements: tuple[Placement, ...]) -> _Parts:
    return _Parts(parts.mesh, parts.axis, placements, parts.shape, "gradient")
