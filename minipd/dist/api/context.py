"""The mesh that is meant where none is given: one per rank."""

from __future__ import annotations

import math

import numpy as np

from minipd.dist.api.tensors import check_mesh
from minipd.dist.mesh import ProcessMesh
from minipd.framework.rank import current

__all__ = ["create_mesh", "get_mesh", "set_mesh"]


def set_mesh(mesh: ProcessMesh) -> None:
    """The mesh of this rank from now on, for whoever asks `get_mesh`: `parallelize`, for instance.

    >>> set_mesh(ProcessMesh([[0, 1], [2, 3]], dim_names=["dp", "mp"]))
    >>> get_mesh()
    shape [2, 2], process_ids [0, 1, 2, 3], dim_names ['dp', 'mp']
    >>> current().mesh = None
    """
    current().mesh = check_mesh(mesh, "set_mesh")


def get_mesh() -> ProcessMesh | None:
    """What `set_mesh` was given; None before."""
    return current().mesh


def create_mesh(mesh_dims: list[tuple[str, int]]) -> ProcessMesh:
    """A mesh of the ranks 0, 1, ... with these axes, outermost first, which becomes this rank's.

    Raises: ValueError for sizes that are not positive.

    >>> create_mesh([("dp", 2), ("mp", 2)])
    shape [2, 2], process_ids [0, 1, 2, 3], dim_names ['dp', 'mp']
    >>> current().mesh = None
    """
    sizes = [int(size) for _, size in mesh_dims]
    if any(size < 1 for size in sizes):
        raise ValueError(f"create_mesh: expected positive sizes, got {mesh_dims}")
    set_mesh(ProcessMesh(np.arange(math.prod(sizes)).reshape(sizes), [name for name, _ in mesh_dims]))
    return current().mesh
