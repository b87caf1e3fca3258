"""The dist interpreter: infer placements, communicate, run the operator on the shards with the interpreter below.

It stands under the tape and above whatever computes: over kernels it is eager distributed execution, over a trace it
writes a rank's program, over metas it only reckons placements.  The rules are the same three times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate
from minipd.dist.reshard.run import run_plan
from minipd.dist.sharding import local_window
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.dist.spmd.table import Decompose
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor

__all__: list[str] = []

MARKS = ("reshard", "match")        # the identity on the global value: nothing is left to run


class Dist:
    """The dist layer of one rank.

    Inference is pure, so its answers are kept: a repeated call costs one look-up.
    """

    def __init__(self, rank: int):
        self.rank = rank
        self.cache: dict[tuple, Any] = {}

    def over(self, lower: Callable) -> Callable:
        """The interpreter function `lower`, distributed."""
        def run(row: Any, payloads: Any, attrs: dict) -> Any:
            for p in payloads:
                if type(p) is DistValue:
                    return self.run(lower, row, payloads, attrs, p.mesh)
            return lower(row, payloads, attrs)
        return run

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        """One operator call with at least one distributed operand; `mesh` is that operand's."""
        xs = [distributed(x, mesh, i in row.shape_only) for i, x in enumerate(payloads)]
        key = (row.name, *[(x.shape, x.placements, x.dtype) if type(x) is DistValue else None for x in xs],
               mesh, *attrs.items())
        call = self.cache.get(key)
        if call is None:
            call = self.cache[key] = self.plan_call(row, xs, attrs, mesh)
        if call is DECOMPOSE:
            return _decomposed(row, xs, attrs)
        inputs, outputs, metas, local_attrs = call
        locals_ = []
        for i, x in enumerate(xs):
            if type(x) is DistValue:
                if x.placements != inputs[i]:
                    x = (shape_of_shard(x, inputs[i], self.rank) if i in row.shape_only else
                         reshard(x, inputs[i], lower, self.rank))
                locals_.append(x)
            else:
                locals_.append(x)
        if row.name in MARKS:
            return locals_[0]
        out = lower(row, [x.local if type(x) is DistValue else x for x in locals_], local_attrs)
        if row.multi:
            return tuple(DistValue(o, m.shape, m.dtype, mesh, p) for o, m, p in zip(out, metas, outputs, strict=True))
        return DistValue(out, metas[0].shape, metas[0].dtype, mesh, outputs[0])

    def plan_call(self, row: Any, xs: list, attrs: dict, mesh: ProcessMesh) -> Any:
        """(input placements, output placements, global metas of the results, attributes of this rank), or DECOMPOSE."""
        metas = row.infer_meta(*xs, **attrs)            # a mistake is reported with global shapes
        found = infer(row, xs, [x.placements if type(x) is DistValue else None for x in xs], attrs, mesh)
        if isinstance(found, Decompose):
            return found
        metas = tuple(Meta(tuple(m.shape), m.dtype) for m in (metas if row.multi else (metas,)))
        return found.inputs, found.outputs, metas, found.attributes(attrs, mesh, self.rank)


def distributed(x: Any, mesh: ProcessMesh, shape_only: bool) -> Any:
    """A payload as an operand: what is not distributed is replicated, a resolved Partial is what it was resolved to."""
    if type(x) is DistValue:
        if x.mesh is not mesh and x.mesh != mesh:
            raise ValueError(f"expected operands on one mesh, got {x!r} on {x.mesh.text()} and another on "
                             f"{mesh.text()}; reshard one of them")
        return x if x.resolved is None or shape_only else x.resolved
    if not hasattr(x, "dtype"):
        return x
    return DistValue(x, tuple(x.shape), x.dtype, mesh, (Replicate(),) * mesh.ndim)


def reshard(x: DistValue, placements: tuple[Placement, ...], lower: Callable, rank: int) -> DistValue:
    """x under other placements: the plan's steps, run by the interpreter below."""
    if x.resolved is not None:
        x = x.resolved
    if x.placements == placements:
        return x
    local = run_plan(x, placements, lower, rank)
    out = DistValue(local, x.shape, x.dtype, x.mesh, placements)
    if any(isinstance(p, Partial) for p in x.placements) and not any(isinstance(p, Partial) for p in placements):
        x.resolved, x.local = out, Meta(x.local.shape, x.dtype)      # later readers start from here; the parts are freed
    return out


def shape_of_shard(x: DistValue, placements: tuple[Placement, ...], rank: int) -> DistValue:
    """A shape-only operand under other placements: nothing moves, only the local shape is another."""
    shape, _ = local_window(x.shape, x.mesh, placements, rank)
    return DistValue(Meta(shape, x.dtype), x.shape, x.dtype, x.mesh, placements)


def _decomposed(row: Any, xs: list, attrs: dict) -> Any:
    """The operator's decomposition, under the same layers but below the tape."""
    with using(grad=False):
        out = row.columns["decompose"](*map(Tensor, xs), **attrs)
    return tuple(o.payload for o in out) if row.multi else out.payload
