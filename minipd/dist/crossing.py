"""A value goes to another mesh; and what a rank has of a value on a mesh that it is no member of.

All ranks run the same program, also where it works on a mesh that some of them do not belong to.  These have nothing of
such a value but its shape, dtype and placements (`Elsewhere`): operators on it give more of the kind.  So a rank knows
what comes when a value crosses to its own mesh, or leaves it, without asking anybody.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard.across import plan_across, receive_blocks, send_blocks
from minipd.dist.rows import whole
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels
from minipd.framework.meta import Meta, describe
from minipd.framework.rank import current

__all__: list[str] = []


class Elsewhere(Meta):
    """What a rank outside of a mesh has of a value on it: nothing.   shape: the global one."""

    __slots__ = ("mesh",)

    def __init__(self, shape: tuple, dtype: np.dtype, mesh: ProcessMesh):
        super().__init__(shape, dtype)
        self.mesh = mesh

    def materialize(self, asked: str) -> Any:
        raise TypeError(f"{asked}: expected a tensor of which rank {current().rank} has a part, got {describe(self)} "
                        f"on {self.mesh.text()} of the ranks {self.mesh.process_ids}; ask on those, or reshard it to a "
                        "mesh with this rank")


def elsewhere(shape: tuple, dtype: np.dtype, mesh: ProcessMesh, placements: tuple[Placement, ...]) -> DistValue:
    """A value on a mesh without this rank."""
    return DistValue(Elsewhere(shape, dtype, mesh), shape, dtype, mesh, placements)


def cross(x: DistValue, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int) -> DistValue:
    """The value of x on another mesh.  The ranks of both meshes call this; others may.

    Raises: NotImplementedError in a program, whose every value is on one mesh.
    """
    here, there = x.mesh.contains(rank), mesh.contains(rank)
    if here and not isinstance(x.held().local, np.ndarray):
        raise NotImplementedError(f"reshard: expected the mesh of the tensor, {x.mesh!r}, got {mesh!r}; inside a "
                                  "program a value stays on its mesh: train with pipeline stages (Pipeline), which "
                                  "cut the program, or reshard eagerly")
    x = x.moved(whole(x.placements), Kernels().run, rank)
    comm, wanted = current().comm, whole(placements)
    messages = plan_across(x.shape, x.mesh, whole(x.placements), mesh, wanted)
    own = None
    if here:
        own = x.local, local_window(x.shape, x.mesh, x.placements, rank)[1]
        send_blocks(comm, *own, messages)
    if not there:
        return elsewhere(x.shape, x.dtype, mesh, placements)
    local = receive_blocks(comm, local_window(x.shape, mesh, wanted, rank), x.dtype, messages, own=own)
    return DistValue(local, x.shape, x.dtype, mesh, wanted).moved(placements, Kernels().run, rank)
