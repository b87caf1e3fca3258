"""Rules of operators that create tensors: nobody's placement decides, so the caller's wish does, else Replicate.

Random numbers depend on a key and the *global* index of an element; `window` = (global shape, offsets) tells a rank
which part of them to draw.  So a tensor is the same however it is placed.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.placements import Partial, Replicate, check_placements
from minipd.dist.sharding import local_window
from minipd.dist.spmd.notation import Notation, Placements, letters
from minipd.dist.spmd.table import Call, Inferred, spmd, spmd_placed

__all__: list[str] = []


@spmd("full_like")
def full_like(like: Any, *, value: Any, dtype: Any = None) -> Notation:
    word = letters(len(like.shape))
    return Notation((word,), (word,), shape_only=(0,))


def _wanted(call: Call, ndim: int, what: str) -> Placements:
    replicated = (Replicate(),) * call.mesh.ndim
    wanted = replicated if call.wanted is None else check_placements(call.wanted, call.mesh, ndim, what)
    if any(isinstance(p, Partial) for p in wanted):
        raise ValueError(f"{what}: expected Shard or Replicate for a tensor that is being created, got {list(wanted)}; "
                         "create it replicated and reshard it")
    return wanted


@spmd_placed("full", "shape_only")
def full(call: Call) -> Inferred:
    """shape is the one attribute that is local."""
    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        return {**attrs, "shape": local_window(attrs["shape"], mesh, outputs[0], rank)[0]}

    return Inferred((), (_wanted(call, len(call.attrs["shape"]), "new tensor"),), local)


@spmd_placed("uniform", "gaussian")
def random(call: Call) -> Inferred:
    """Operand: the key, which every rank needs."""
    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        shape, offsets = local_window(attrs["shape"], mesh, outputs[0], rank)
        whole = shape == tuple(attrs["shape"])
        return attrs if whole else {**attrs, "shape": shape, "window": (tuple(attrs["shape"]), offsets)}

    replicated = (Replicate(),) * call.mesh.ndim
    return Inferred((replicated,), (_wanted(call, len(call.attrs["shape"]), "new tensor"),), local)


@spmd_placed("arange", "dim", "full_int_array")
def replicated(call: Call) -> Inferred:
    """Small, and cheaper to make on every rank than to place."""
    return Inferred((), ((Replicate(),) * call.mesh.ndim,))
