"""The dist interpreter: infer placements, communicate, run the operator on the shards with the interpreter below.

It stands under the tape and above whatever computes: over kernels it is eager distributed execution, over a trace it
writes a rank's program, over metas it only reckons placements.  The rules are the same three times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.crossing import cross, elsewhere
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, whole
from minipd.dist.sharding import local_shape
from minipd.dist.spmd import infer
from minipd.dist.spmd.refusals import check_refusals
from minipd.dist.spmd.table import Decompose
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.flags import flag
from minipd.framework.meta import Meta, describe
from minipd.framework.tensor import Tensor

__all__: list[str] = []

REPLICATE = Replicate()
PLACING = ("reshard", "shard_tensor")               # say where a value is to be, perhaps on another mesh
MARKS = (*PLACING, "match", "align")                # the identity on the global value: nothing is left to run
CROSS = "to another mesh"
REMEMBERED = 4096                   # calls; a loop whose attributes never repeat would remember for ever


class Dist:
    """The dist layer of one rank.

    Inference is pure, so its answers are kept: a repeated call costs one look-up.
    """

    def __init__(self, rank: int):
        self.rank = rank
        self.cache: dict[tuple, Any] = {}

    def of(self, rank: int) -> Dist:
        """The layer of another rank, with nothing remembered: what this process does once it knows which it is."""
        return type(self)(rank)

    def over(self, lower: Callable) -> Callable:
        """The interpreter function `lower`, distributed."""
        def run(row: Any, payloads: Any, attrs: dict) -> Any:
            for p in payloads:
                if type(p) is DistValue:
                    return self.run(lower, row, payloads, attrs, p.mesh)
            if row.name in PLACING:                 # where a tensor that every rank has becomes a distributed one
                return self.run(lower, row, payloads, attrs, attrs["mesh"])
            return lower(row, payloads, attrs)
        return run

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        """One operator call on `mesh`."""
        xs: list = []
        key: list = [row.name, mesh]
        for x in payloads:
            if type(x) is DistValue:
                if x.mesh is not mesh and x.mesh != mesh:
                    return self.run_between(lower, row, payloads, attrs)
                if x.resolved is not None and len(xs) not in row.shape_only:
                    x = x.resolved                              # a Partial that somebody needed is what it is now
                key += x.shape, x.placements, x.dtype
            elif hasattr(x, "dtype"):
                x = DistValue(x, tuple(x.shape), x.dtype, mesh, (REPLICATE,) * mesh.ndim)   # every rank has it
                key += x.shape, None, x.dtype
            else:
                key.append(type(x))
            xs.append(x)
        if attrs:
            key += attrs.items()
        call = self.cache.get(known := tuple(key))
        if call is None:
            if len(self.cache) >= REMEMBERED:
                self.cache.clear()
            call = self.cache[known] = self.plan_call(row, xs, attrs, mesh)
        if type(call) is Decompose:
            if call.inputs is not None:
                xs = [x.moved(p, lower, self.rank) if type(x) is DistValue else x
                      for x, p in zip(xs, call.inputs, strict=True)]
            return decomposed(row, xs, attrs)
        if call is CROSS:
            return self.cross(xs[0], attrs["mesh"], tuple(attrs["placements"]), lower)
        inputs, outputs, metas, local_attrs, here = call
        locals_: list = []
        for i, wanted in enumerate(inputs):
            x = xs[i]
            if type(x) is DistValue:
                if x.placements != wanted:
                    if i not in row.shape_only:
                        xs[i] = x = x.moved(wanted, lower, self.rank)
                    elif here:
                        x = shape_of_shard(x, wanted, self.rank)
                x = x.local
            locals_.append(x)
        if not here:                    # only noted, above, what the mesh's ranks have resolved for this call
            outs = tuple(elsewhere(m.shape, m.dtype, mesh, p) for m, p in zip(metas, outputs, strict=True))
            return outs if row.multi else outs[0]
        if row.name in MARKS:
            return tuple(xs) if row.multi else xs[0]
        out = lower(row, locals_, attrs if local_attrs is None else local_attrs)
        if row.multi:
            return tuple(DistValue(o, m.shape, m.dtype, mesh, p) for o, m, p in zip(out, metas, outputs, strict=True))
        return DistValue(out, metas[0].shape, metas[0].dtype, mesh, outputs[0])

    def run_between(self, lower: Callable, row: Any, payloads: Any, attrs: dict) -> Any:
        """One operator call with operands on several meshes.

        Three calls have a meaning there.  `match` brings a gradient to where its primal is.  What is replicated on a
        larger mesh is there on a part of it as well, and nothing moves.  A sum of gradients' sums (`add_n`), as for a
        norm of all parameters wherever they are, is made by the ranks of all the meshes together.

        Raises: ValueError for any other call.
        """
        xs = [p.held() if type(p) is DistValue and i not in row.shape_only else p for i, p in enumerate(payloads)]
        if row.name == "match":
            return self.cross(xs[0], xs[1].mesh, whole(xs[1].placements), lower)
        meshes = list(dict.fromkeys(x.mesh for x in xs if type(x) is DistValue))
        small = min(meshes, key=lambda mesh: mesh.size)
        if all(covers(x, small) for x in xs if type(x) is DistValue and x.mesh != small):
            return self.run(lower, row, [on_part(x, small) if type(x) is DistValue else x for x in xs], attrs, small)
        if row.name == "add_n":
            together = ProcessMesh(sorted({rank for mesh in meshes for rank in mesh.process_ids}))
            ys = [self.cross(x, together, (REPLICATE,), lower) for x in xs]
            return self.run(lower, row, ys, attrs, together)
        one, other = (next(x for x in xs if type(x) is DistValue and x.mesh == mesh) for mesh in meshes[:2])
        raise ValueError(f"{row.name}: expected operands on one mesh, got {one!r} on {one.mesh.text()} of the ranks "
                         f"{one.mesh.process_ids} and {other!r} on {other.mesh.text()} of the ranks "
                         f"{other.mesh.process_ids}; reshard one to the other's mesh")

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: tuple[Placement, ...], lower: Callable) -> DistValue:
        """The value of x on another mesh."""
        return cross(x, mesh, placements, self.rank)

    def plan_call(self, row: Any, xs: list, attrs: dict, mesh: ProcessMesh) -> Any:
        """(input placements, output placements, global metas of the results, attributes of this rank or None where they
        are the call's own, whether this rank is in the mesh), or a Decompose, or CROSS."""
        metas = row.infer_meta(*xs, **attrs)            # a mistake is reported with global shapes
        if row.name in PLACING and attrs["mesh"] != mesh:
            return CROSS
        given = [x.placements if type(x) is DistValue else None for x in xs]
        if flag("FLAGS_refuse_as_paddle"):
            check_refusals(row, xs, given, attrs, mesh)
        found = infer(row, xs, given, attrs, mesh)
        if isinstance(found, Decompose):
            return found
        metas = tuple(Meta(tuple(m.shape), m.dtype) for m in (metas if row.multi else (metas,)))
        here = mesh.contains(self.rank)
        local = found.attributes(attrs, mesh, self.rank) if here and found.local is not None else None
        return found.inputs, found.outputs, metas, local, here


def covers(x: DistValue, mesh: ProcessMesh) -> bool:
    """Whether all ranks of `mesh` have the whole of x."""
    return all(p.is_replicated() for p in x.placements) and set(mesh.process_ids) <= set(x.mesh.process_ids)


def on_part(x: DistValue, mesh: ProcessMesh) -> DistValue:
    """What `covers` the mesh, as a value on it."""
    return x if x.mesh == mesh else DistValue(x.local, x.shape, x.dtype, mesh, (REPLICATE,) * mesh.ndim)


def shape_of_shard(x: DistValue, placements: tuple[Placement, ...], rank: int) -> DistValue:
    """A shape-only operand under other placements: nothing moves, only the local shape is another."""
    shape = local_shape(x.shape, x.mesh, placements, rank)
    return DistValue(Meta(shape, x.dtype), x.shape, x.dtype, x.mesh, placements)


def decomposed(row: Any, xs: list, attrs: dict) -> Any:
    """The operator's decomposition, under the same layers but below the tape."""
    try:
        with using(grad=False):
            out = row.columns["decompose"](*(Tensor(x) if hasattr(x, "dtype") else x for x in xs), **attrs)
    except Exception as error:
        error.add_note(f"in the decomposition of {row.name}({', '.join(map(describe, xs))})")
        raise
    return tuple(o.payload for o in out) if row.multi else out.payload
