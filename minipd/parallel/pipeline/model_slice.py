"""The part of a model that a stage has: its pieces, and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.parallel.step import shard_model

__all__ = ["ModelSlice", "stage_meshes"]


def stage_meshes(mesh: ProcessMesh, axis: str = "pp") -> list[ProcessMesh]:
    """The sub-mesh of each stage.

    >>> from minipd.dist.mesh import parse_mesh
    >>> [stage.process_ids for stage in stage_meshes(parse_mesh("pp=2,tp=2"))]
    [[0, 1], [2, 3]]
    """
    return [mesh.get_mesh_with_dim(axis, i) for i in range(mesh.get_dim_size(axis))]


class ModelSlice:
    """What this rank has of `model`, whose parameters it distributes in place on the ranks of its stage.

    model: has `pieces(seq_len)`, a list of (name, function of one tensor) that one after the other make its logits of
        the ids.  mesh: the whole mesh, with an axis of stages.  stage_of(name): the stage of the parameter or piece of
        that name.  placements(name, mesh): those of a parameter on the mesh of its stage.  copies: name of a parameter
        -> another stage that uses it too, and has a copy (see `tied.py`).

    Attributes: index, of which stage this is; meshes, those of all stages, and mesh, its own; first, last; parameters,
    those of this stage by name.  Parameters of other stages are left as they are: made lazily, they hold nothing.
    """

    def __init__(self, model: Any, mesh: ProcessMesh, stage_of: Callable[[str], int],
                 placements: Callable[[str, ProcessMesh], list[Placement]], axis: str = "pp",
                 copies: Mapping[str, int] | None = None):
        self.model, self.whole, self.first_stage_of, self.copies = model, mesh, stage_of, dict(copies or {})
        self.meshes = stage_meshes(mesh, axis)
        self.index = mesh.get_rank_by_dim_and_process_id(axis, current().rank)
        self.mesh = self.meshes[self.index]
        self.first, self.last = self.index == 0, self.index == len(self.meshes) - 1
        self.parameters: dict[str, Parameter] = shard_model(model, self.mesh, placements, self._has)

    def _has(self, name: str) -> bool:
        return self.index in (self.first_stage_of(name), self.copies.get(name))

    def stage_of(self, name: str) -> int | None:
        """The stage of a parameter; None for one that several have."""
        return None if name in self.copies else self.first_stage_of(name)

    def __call__(self, x: Tensor, seq_len: int) -> Tensor:
        """From what enters this stage (the first: ids) to what leaves it (the last: logits)."""
        for name, piece in self.model.pieces(seq_len):
            if self._has(name):
                x = piece(x)
        return x
