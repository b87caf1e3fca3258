"""A value goes to another mesh; and what a rank has of a value on a mesh that it is no member of.

All ranks run the same program, also where it works on a mesh that some of them do not belong to.  These have nothing of
such a value but its shape, dtype and placements (`Elsewhere`): operators on it give more of the kind.  So a rank knows
what comes when a value crosses to its own mesh, or leaves it, without asking anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.reshard.between import plan_between
from minipd.dist.reshard.run import run_between
from minipd.dist.value import DistValue
from minipd.framework.context import Kernels
from minipd.framework.dim import is_symbolic
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


def cross(x: DistValue, mesh: ProcessMesh, placements: tuple[Placement, ...], rank: int,
          run: Callable | None = None) -> DistValue:
    """The value of x on another mesh.  The ranks of both meshes call this; others may.

    run: the interpreter below: kernels (if None), or a trace, which notes what a rank sends and gets.

    Raises: NotImplementedError for a shape with symbols in it.
    """
    x = x.held()
    if is_symbolic(x.shape):
        raise NotImplementedError(f"reshard to another mesh: expected sizes that are numbers, got {x!r}; give the "
                                  "inputs of the program fixed sizes")
    between = plan_between(x.mesh, x.placements, mesh, placements, tuple(x.shape))
    local = run_between(x, mesh, between, run or Kernels().run, rank)
    if local is None:
        return elsewhere(x.shape, x.dtype, mesh, placements)
    return DistValue(local, x.shape, x.dtype, mesh, placements)
