"""What distribution adds to programs: the type of a distributed value, and attributes for meshes and placements.

A global program's values have their *global* shape.  Completion gives each the type

    pd_dist.tensor<16x128x64xf32, mesh([2, 2], [0, 1, 2, 3], "dp", "tp"), S(0), R>

In Paddle's style of text types are spelled as Paddle spells them, and operations say once more, in `op_dist_attr`,
where their operands and results are.

The operations of dialect `dist_op` are rows (`reshard`, `match`); see `rows.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.dist.sharding import sharding_text, split_axes
from minipd.ir.attributes import Attribute, attribute_kind
from minipd.ir.dialect import Dialect, register_dialect
from minipd.ir.types import TensorType, type_keyword

__all__ = ["DistTensorType"]

dist_op = register_dialect(Dialect("dist_op"))


def placement_text(p: Placement) -> str:
    """`R`, `S(0)`, `S(0, order=1, factor=3)`, `P` or `P(max)`."""
    if isinstance(p, Shard):
        order, factor = (f", order={p.order}" if p.order else ""), (f", factor={p.factor}" if p.factor > 1 else "")
        return f"S({p.dim}{order}{factor})"
    if isinstance(p, Partial):
        return "P" if p.op == "sum" else f"P({p.op})"
    return "R"


def parse_placement(parser: Any) -> Placement:
    """Read what `placement_text` wrote."""
    kind = parser.word("a placement: R, S(dim), P or P(kind)", {"R": "R", "S": "S", "P": "P"}.__getitem__)
    if kind == "R":
        return Replicate()
    if kind == "P" and not parser.accept("("):
        return Partial()
    if kind == "S":
        parser.expect("(")
        placement: Any = Shard(parser.integer())
        while parser.accept(","):
            part = parser.word("order or factor", {"order": "shard_order", "factor": "split_factor"}.__getitem__)
            parser.expect("=")
            placement = placement.with_(**{part: parser.integer()})
    else:
        placement = Partial(parser.word("a kind of reduction", str))
    parser.expect(")")
    return placement


def mesh_text(mesh: ProcessMesh) -> str:
    """`[2, 2], [0, 1, 2, 3], "dp", "tp"`."""
    return ", ".join([str(mesh.shape), str(mesh.process_ids), *map(json.dumps, mesh.dim_names)])


def parse_mesh_text(parser: Any) -> ProcessMesh:
    """Read what `mesh_text` wrote."""
    shape = parser.sequence("[", parser.integer, "]")
    parser.expect(",")
    ids = parser.sequence("[", parser.integer, "]")
    names = []
    while parser.accept(","):
        parser.space()
        names.append(parser.string())
    return ProcessMesh(shape=shape, process_ids=ids, dim_names=names)


def _packed(numbers: Sequence[Any]) -> str:
    return str(list(numbers)).replace(" ", "")


@attribute_kind("placement", Placement, Shard, Replicate, Partial)
class PlacementAttribute(Attribute):
    """What one mesh axis holds."""

    __slots__ = ()

    def literal(self) -> str:
        return placement_text(self.value)

    def paddle(self) -> str:
        return str(self.value)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parse_placement(parser))


@attribute_kind("mesh", ProcessMesh)
class MeshAttribute(Attribute):
    """A grid of ranks."""

    __slots__ = ()

    def __new__(cls, value: ProcessMesh) -> MeshAttribute:
        return cls.unique((value, value.names), value)          # meshes are equal whatever the names of their axes

    def literal(self) -> str:
        return mesh_text(self.value)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parse_mesh_text(parser))


@type_keyword("pd_dist.tensor")
class DistTensorType(TensorType):
    """A tensor type with the mesh and the placements that completion found.

    >>> import numpy as np
    >>> from minipd.dist.mesh import parse_mesh
    >>> DistTensorType((4, 8), np.dtype("float32"), parse_mesh("dp=2,tp=2"), (Shard(0), Partial()))
    pd_dist.tensor<4x8xf32, mesh([2, 2], [0, 1, 2, 3], "dp", "tp"), S(0), P>
    """

    __slots__ = ("mesh", "placements")

    mesh: ProcessMesh
    placements: tuple[Placement, ...]

    def __new__(cls, shape: tuple, dtype: Any, mesh: ProcessMesh, placements: Sequence[Placement]) -> DistTensorType:
        parts = tuple(shape), dtype, mesh, tuple(placements)
        return cls.unique((*parts, mesh.names), *parts)         # meshes are equal whatever the names of their axes

    def notation(self) -> str:
        """`f32[4_dp, 8]{P_tp}`."""
        return sharding_text(self.shape, self.dtype, self.mesh, self.placements)

    def mesh_attr(self) -> str:
        """`shape:[2,2],process_ids:[0,1,2,3]`, as Paddle writes a mesh."""
        return f"shape:{_packed(self.mesh.shape)},process_ids:{_packed(self.mesh.process_ids)}"

    def dist_attr(self) -> str:
        """Mesh and placements as Paddle writes them: which axis splits each dimension (-1: none; several in a list),
        which axes are partial, and the placements."""
        split = [split_axes(self.placements, dim) for dim in range(len(self.shape))]
        maps = _packed([-1 if not axes else axes[0] if len(axes) == 1 else list(axes) for axes in split])
        partial = ",".join(f"partial({axis},{p.op.upper()})" for axis, p in enumerate(self.placements)
                           if isinstance(p, Partial))
        return (f"mesh_{self.mesh_attr()},dims_mappings:{maps}, {partial}{', ' if partial else ''}"
                f"placements:{list(self.placements)}")

    def text(self, exact: bool) -> str:
        if not exact:
            return f"pd_dist.tensor<{self.body(exact)}, {self.dist_attr()}>"
        placed = ", ".join(map(placement_text, self.placements))
        return f"pd_dist.tensor<{self.body(exact)}, mesh({mesh_text(self.mesh)}), {placed}>"

    @classmethod
    def parse(cls, parser: Any, word: str) -> DistTensorType:
        shape, dtype = parser.shape_and_dtype()
        parser.expect(",")
        parser.word("mesh", {"mesh": None}.__getitem__)
        parser.expect("(")
        mesh = parse_mesh_text(parser)
        parser.expect(")")
        placements = []
        while parser.accept(","):
            placements.append(parse_placement(parser))
        parser.expect(">")
        return cls(shape, dtype, mesh, tuple(placements))
