"""DistAttr: how a tensor is split, told dimension by dimension."""

from __future__ import annotations

from minipd.dist.api.tensors import check_mesh
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, Shard
from minipd.dist.value import mesh_text

__all__ = ["DistAttr"]


class DistAttr:
    """A mesh, and for each dimension the name of the mesh axis that splits it, None for none.

    process_mesh, sharding_specs: what it was given.  dims_mapping: the same with numbers of axes, -1 for none.
    placements: the same by mesh axis.
    Raises: ValueError for a name that no axis has, or an axis that splits two dimensions.

    >>> from minipd.dist.mesh import ProcessMesh
    >>> attr = DistAttr(ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"]), [None, "x"])
    >>> attr.dims_mapping, attr.placements
    ([-1, 0], [Shard(dim=1), Replicate()])
    >>> print(attr)
    {process_mesh: {shape: [2,3], process_ids: [2,4,5,0,1,3], dim_names: [x,y]}, dims_mapping: [-1,0]}
    """

    def __init__(self, mesh: ProcessMesh, sharding_specs: list[str | None]):
        self.process_mesh = check_mesh(mesh, "DistAttr")
        if not isinstance(sharding_specs, list):
            raise ValueError(f"DistAttr: expected sharding_specs to be a list of names of axes and None, got "
                             f"{sharding_specs!r}")
        unknown = [name for name in sharding_specs if name is not None and name not in mesh.names]
        if unknown:
            raise ValueError(f"DistAttr: expected names of axes of the mesh, {mesh.dim_names}, got {unknown[0]!r}")
        named = [name for name in sharding_specs if name is not None]
        if len(set(named)) < len(named):
            raise ValueError(f"DistAttr: expected each axis to split one dimension, got {sharding_specs}")
        self.sharding_specs = list(sharding_specs)

    @property
    def dims_mapping(self) -> list[int]:
        return [-1 if name is None else self.process_mesh.names.index(name) for name in self.sharding_specs]

    @property
    def placements(self) -> list[Placement]:
        return [Shard(self.sharding_specs.index(name)) if name in self.sharding_specs else Replicate()
                for name in self.process_mesh.names]

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, DistAttr) and self.process_mesh == other.process_mesh
                and self.dims_mapping == other.dims_mapping)

    def __hash__(self) -> int:
        return hash((self.process_mesh, *self.dims_mapping))

    def __repr__(self) -> str:
        mapping = ",".join(map(str, self.dims_mapping))
        return f"{{process_mesh: {mesh_text(self.process_mesh)}, dims_mapping: [{mapping}]}}"
