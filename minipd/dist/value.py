"""The payload of a distributed tensor: a global shape, placements, and what this rank holds of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import sharding_text
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.framework.row import ROWS

__all__: list[str] = []


class DistValue:
    """One global value of which every rank of `mesh` holds a part.

    local: the payload below: an array, an `ir.Value` or a `Meta`.  shape: the *global* shape.
    resolved: the same value without Partial, once somebody needed it.  Placements never change in place; a Partial is
    resolved at most once, after which its parts are forgotten.
    """

    __slots__ = ("dtype", "local", "mesh", "placements", "resolved", "shape")
    traced = False

    def __init__(self, local: Any, shape: tuple, dtype: np.dtype, mesh: ProcessMesh,
                 placements: tuple[Placement, ...]):
        self.local, self.shape, self.dtype, self.mesh, self.placements = local, shape, dtype, mesh, placements
        self.resolved: DistValue | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def meta(self) -> DistValue:
        """The same without data: what a gradient rule saves of an operand whose values it does not read."""
        return DistValue(Meta(self.local.shape, self.dtype), self.shape, self.dtype, self.mesh, self.placements)

    def materialize(self, asked: str) -> np.ndarray:
        """The global values, as an array.  Communicates unless they are replicated: every rank must ask."""
        whole = current().run(ROWS["reshard"], [self], {"mesh": self.mesh,
                                                        "placements": (Replicate(),) * self.mesh.ndim}).local
        return whole if isinstance(whole, np.ndarray) else whole.materialize(asked)

    def __repr__(self) -> str:
        return sharding_text(self.shape, self.dtype, self.mesh, self.placements)
