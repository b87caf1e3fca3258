"""The payload of a distributed tensor: a global shape, placements, and what this rank holds of it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, whole
from minipd.dist.reshard.run import run_plan
from minipd.dist.sharding import sharding_text
from minipd.framework import dtype as dtypes
from minipd.framework.context import Kernels
from minipd.framework.meta import Meta
from minipd.framework.printing import PREFIX, text_of
from minipd.framework.rank import current

__all__: list[str] = []


def mesh_text(mesh: ProcessMesh) -> str:
    """The mesh as Paddle prints it with a tensor.

    >>> mesh_text(ProcessMesh([[0, 1]], dim_names=["dp", "tp"]))
    '{shape: [1,2], process_ids: [0,1], dim_names: [dp,tp]}'
    """
    shape, ids, names = (",".join(map(str, of)) for of in (mesh.sizes, mesh.process_ids, mesh.names))
    return f"{{shape: [{shape}], process_ids: [{ids}], dim_names: [{names}]}}"


class DistValue:
    """One global value of which every rank of `mesh` holds a part.

    local: the payload below: an array, an `ir.Value` or a `Meta`.  shape: the *global* shape.
    resolved: the same value without Partial, once somebody needed it.  Placements never change in place; a Partial is
    resolved at most once, after which its parts are forgotten.
    handles: weak references to the tensors that `detach` and `copy` have made share this value; None for most.
    """

    __slots__ = ("dtype", "handles", "local", "mesh", "placements", "resolved", "shape")
    traced = False

    def __init__(self, local: Any, shape: tuple, dtype: np.dtype, mesh: ProcessMesh,
                 placements: tuple[Placement, ...]):
        self.local, self.shape, self.dtype, self.mesh, self.placements = local, shape, dtype, mesh, placements
        self.resolved: DistValue | None = None
        self.handles: list[weakref.ref] | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def meta(self) -> DistValue:
        """The same without data: what a gradient rule saves of an operand whose values it does not read."""
        return DistValue(Meta(self.local.shape, self.dtype), self.shape, self.dtype, self.mesh, self.placements)

    @property
    def placed(self) -> tuple[ProcessMesh, tuple[Placement, ...]]:
        """The mesh, and the placements that a program reads the value under: a Partial one is whole there."""
        return self.mesh, whole(self.held().placements)

    def share(self, *handles: Any) -> None:
        """These tensors share the value: an in-place write to one is a write to all."""
        self.handles = [weakref.ref(h) for h in {id(h): h for h in (*self.sharing(), *handles)}.values()]

    def sharing(self) -> list[Any]:
        """The tensors that share the value and are still there."""
        return [h for h in (ref() for ref in self.handles or ()) if h is not None and h.payload is self]

    def held(self) -> DistValue:
        """What this rank holds of the value now: the value itself, or what it was resolved to."""
        return self if self.resolved is None else self.resolved

    def moved(self, placements: tuple[Placement, ...], run: Callable, rank: int) -> DistValue:
        """The value under other placements: the plan's steps, run by the interpreter function `run`.

        A rank outside of the mesh has nothing to move, but notes as the others do what a Partial was resolved to: when
        the value comes to its own mesh, it must know what is sent.
        """
        if self.resolved is not None:
            return self.resolved.moved(placements, run, rank)
        if self.placements == placements:
            return self
        local = run_plan(self, placements, run, rank) if self.mesh.contains(rank) else self.local
        out = DistValue(local, self.shape, self.dtype, self.mesh, placements)
        if any(p.is_partial() for p in self.placements) and not any(isinstance(p, Partial) for p in placements):
            self.resolved = out
            if local is not self.local:
                self.local = Meta(self.local.shape, self.dtype)                     # the parts are free to go
        return out

    def materialize(self, asked: str) -> np.ndarray:
        """The global values, as an array.  Communicates unless they are replicated: every rank must ask.

        Raises: TypeError where there are no values yet.
        """
        local = self.held().local
        if not isinstance(local, np.ndarray):
            return local.materialize(asked)
        run, rank = Kernels().run, current().rank
        resolved = self.moved(whole(self.placements), run, rank)
        return resolved.moved((Replicate(),) * self.mesh.ndim, run, rank).local     # the whole is nothing to keep

    def on_all_ranks(self, what: str) -> np.ndarray | None:
        """The values of what is replicated, to be written over those of a tensor that every rank has; None where there
        are none yet.

        Raises: ValueError if there are ranks outside of the mesh, which would keep the old ones; on every rank.
        """
        ranks = range(current().world_size)
        if not all(map(self.mesh.contains, ranks)):
            raise ValueError(f"{what}: expected a value that all ranks {list(ranks)} have, to be written over one that "
                             f"is on no mesh, got {self!r} on {self.mesh.text()} of the ranks {self.mesh.process_ids}; "
                             "place the tensor on that mesh first, with shard_tensor or shard_layer")
        local = self.held().local
        return local if isinstance(local, np.ndarray) else None

    def as_handle(self, stop_gradient: bool) -> str:
        """How Paddle prints a distributed tensor: with its global values.  Communicates unless they are replicated:
        every rank must print, except those outside of the mesh, which have no values to show."""
        local, alone = self.held().local, current().comm is None and self.mesh.size > 1
        if not isinstance(local, np.ndarray):
            shown = " Not initialized"
        elif alone and any(not p.is_replicated() for p in self.held().placements):
            shown = f" needs the ranks {self.mesh.process_ids}, this process is alone"
        else:
            shown = f"=\n{' ' * PREFIX}{text_of(self.materialize('repr()'), PREFIX)}"
        return (f"Tensor(shape={list(self.shape)}, dtype={dtypes.of(self.dtype).name}, place=Place(cpu), "
                f"stop_gradient={stop_gradient}, process_mesh={mesh_text(self.mesh)}, "
                f"placements={list(self.placements)}, GlobalDenseTensor{shown})")

    def __repr__(self) -> str:
        return sharding_text(self.shape, self.dtype, self.mesh, self.placements)
