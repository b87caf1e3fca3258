"""The dist interpreter: infer placements, communicate, run the operator on the shards with the interpreter below.

It stands under the tape and above whatever computes: over kernels it is eager distributed execution, over a trace it
writes a rank's program, over metas it only reckons placements.  The rules are the same three times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.crossing import cross, elsewhere
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import local_window
from minipd.dist.spmd import DECOMPOSE, infer
from minipd.dist.spmd.table import Decompose
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.meta import Meta, describe
from minipd.framework.tensor import Tensor

__all__: list[str] = []

MARKS = ("reshard", "match")        # the identity on the global value: nothing is left to run
CROSS = "to another mesh"
REMEMBERED = 4096                   # calls; a loop whose attributes never repeat would remember for ever


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
            if row.name == "reshard":               # where a tensor that every rank has becomes a distributed one
                return self.run(lower, row, payloads, attrs, attrs["mesh"])
            return lower(row, payloads, attrs)
        return run

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        """One operator call on `mesh`."""
        xs = [distributed(row, x, mesh, i in row.shape_only) for i, x in enumerate(payloads)]
        key = (row.name, *[(x.shape, x.placements, x.dtype) if type(x) is DistValue else type(x) for x in xs],
               mesh, *attrs.items())
        call = self.cache.get(key)
        if call is None:
            if len(self.cache) >= REMEMBERED:
                self.cache.clear()
            call = self.cache[key] = self.plan_call(row, xs, attrs, mesh)
        if call is DECOMPOSE:
            return _decomposed(row, xs, attrs)
        if call is CROSS:
            return cross(xs[0], attrs["mesh"], tuple(attrs["placements"]), self.rank)
        inputs, outputs, metas, local_attrs = call
        if not mesh.contains(self.rank):
            for i, x in enumerate(xs):              # what the mesh's ranks resolve for this call is resolved here, too
                if type(x) is DistValue and i not in row.shape_only:
                    x.moved(inputs[i], lower, self.rank)
            outs = tuple(elsewhere(m.shape, m.dtype, mesh, p) for m, p in zip(metas, outputs, strict=True))
            return outs if row.multi else outs[0]
        for i, x in enumerate(xs):
            if type(x) is DistValue and x.placements != inputs[i]:
                xs[i] = (shape_of_shard(x, inputs[i], self.rank) if i in row.shape_only else
                         x.moved(inputs[i], lower, self.rank))
        if row.name in MARKS:
            return xs[0]
        out = lower(row, [x.local if type(x) is DistValue else x for x in xs],
                    attrs if local_attrs is None else local_attrs)
        if row.multi:
            return tuple(DistValue(o, m.shape, m.dtype, mesh, p) for o, m, p in zip(out, metas, outputs, strict=True))
        return DistValue(out, metas[0].shape, metas[0].dtype, mesh, outputs[0])

    def plan_call(self, row: Any, xs: list, attrs: dict, mesh: ProcessMesh) -> Any:
        """(input placements, output placements, global metas of the results, attributes of this rank or None where they
        are the call's own), or DECOMPOSE, or CROSS."""
        metas = row.infer_meta(*xs, **attrs)            # a mistake is reported with global shapes
        if row.name == "reshard" and attrs["mesh"] != mesh:
            return CROSS
        found = infer(row, xs, [x.placements if type(x) is DistValue else None for x in xs], attrs, mesh)
        if isinstance(found, Decompose):
            return found
        metas = tuple(Meta(tuple(m.shape), m.dtype) for m in (metas if row.multi else (metas,)))
        here = mesh.contains(self.rank)
        local = found.attributes(attrs, mesh, self.rank) if here and found.local is not None else None
        return found.inputs, found.outputs, metas, local


def distributed(row: Any, x: Any, mesh: ProcessMesh, shape_only: bool) -> Any:
    """A payload as an operand of `row`: what is not distributed is replicated, a resolved Partial is what it was
    resolved to."""
    if type(x) is DistValue:
        if x.mesh is not mesh and x.mesh != mesh:
            raise ValueError(f"{row.name}: expected operands on one mesh, got {x!r} on {x.mesh.text()} of the ranks "
                             f"{x.mesh.process_ids} and another on {mesh.text()} of the ranks {mesh.process_ids}; "
                             "reshard one to the other's mesh")
        return x if shape_only else x.held()
    if not hasattr(x, "dtype"):
        return x
    return DistValue(x, tuple(x.shape), x.dtype, mesh, (Replicate(),) * mesh.ndim)


def shape_of_shard(x: DistValue, placements: tuple[Placement, ...], rank: int) -> DistValue:
    """A shape-only operand under other placements: nothing moves, only the local shape is another."""
    shape, _ = local_window(x.shape, x.mesh, placements, rank)
    return DistValue(Meta(shape, x.dtype), x.shape, x.dtype, x.mesh, placements)


def _decomposed(row: Any, xs: list, attrs: dict) -> Any:
    """The operator's decomposition, under the same layers but below the tape."""
    try:
        with using(grad=False):
            out = row.columns["decompose"](*(Tensor(x) if hasattr(x, "dtype") else x for x in xs), **attrs)
    except Exception as error:
        error.add_note(f"in the decomposition of {row.name}({', '.join(map(describe, xs))})")
        raise
    return tuple(o.payload for o in out) if row.multi else out.payload
