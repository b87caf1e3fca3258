"""Rules of `reshard`, `match` and `align`, the identity on the global value: all they do is ask for placements.

The interpreter brings the operand there and runs an identity, as for any other operator.  `stage_sum` takes its operand
as it is too.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.placements import check_placements, whole
from minipd.dist.spmd.notation import Notation
from minipd.dist.spmd.table import Call, Inferred, spmd, spmd_placed

__all__: list[str] = []


@spmd_placed("reshard", "shard_tensor")
def reshard(call: Call) -> Inferred:
    """Attributes: mesh, placements."""
    mesh = call.attrs["mesh"]
    if mesh != call.mesh:
        raise ValueError(f"reshard: expected the mesh of the tensor, {call.mesh!r}, got {mesh!r}; what goes to another "
                         "mesh has no rule on one: it is planned by plan_between")
    target = check_placements(call.attrs["placements"], mesh, len(call.metas[0].shape), "reshard")
    return Inferred((target,), (target,))


@spmd_placed("match")
def match(call: Call) -> Inferred:
    """A gradient x takes the placements of its primal `like`, Partial read as Replicate: a gradient whose parts had
    to be added up again at every use would be reduced again at every use."""
    like = call.placements[1]
    target = whole(like)
    return Inferred((target, like), (target,))


@spmd("align")
def align(*xs: Any, words: tuple[str, ...], prefer: tuple[str, ...] = (), lead: int | None = None) -> Notation:
    return Notation(words, words, prefer=prefer, lead=lead)


@spmd_placed("stage_sum")
def stage_sum(call: Call) -> Inferred:
    """Every rank of a stage adds its part of the value to the same parts of the other stages; a Partial is resolved
    first, so that ranks without a part of their own get the sum too."""
    target = whole(call.placements[0])
    return Inferred((target,), (target,))
