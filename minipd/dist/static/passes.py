"""From a marked program to the program of one rank: the stages, each a pass that prints and draws.

    mix2dist_pass               marks of shard_tensor become the types of inputs and parameters
    completion_pass             every value gets its mesh and its placements
    partition_pass              dist_op.reshard wherever an operation needs an operand placed otherwise
    reshard_insertion_pass      ... becomes what a rank does for it: collectives, slices, sends and receives
    remove_other_ranks_pass     what is on meshes without the rank goes
    dist2dense_pass             local shapes and attributes, ordinary types: a program to run

The first three are the same on all ranks.  The others are one rank's: option `rank`, by default the rank that runs
them.  After all of them the program is what `partition` makes of the completed one at once; that is how programs are
made that nobody looks into.

    >>> from minipd.dist.api.tensors import reshard, shard_tensor
    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Replicate, Shard
    >>> from minipd.framework.meta import Meta
    >>> from minipd.framework import dtype as dtypes
    >>> from minipd.ir.traced import trace
    >>> mesh = parse_mesh("tp=2")
    >>> def product(x, w):
    ...     x, w = shard_tensor(x, mesh, [Shard(1)]), shard_tensor(w, mesh, [Shard(0)])
    ...     return x.matmul(w).tanh()
    >>> f32 = dtypes.float32.np
    >>> program = trace(product, Meta((4, 6), f32), Meta((6, 8), f32)).program
    >>> for name, stage in stages(program, rank=1).items():
    ...     print(f"{name:24}", *(op.name().split(".")[1] for op in stage.walk()))
    mix2dist_pass            data data matmul tanh shadow_output
    completion_pass          data data matmul tanh shadow_output
    partition_pass           data data matmul reshard tanh shadow_output
    reshard_insertion_pass   data data matmul dtensor_to_local all_reduce dtensor_from_local tanh shadow_output
    remove_other_ranks_pass  data data matmul dtensor_to_local all_reduce dtensor_from_local tanh shadow_output
    dist2dense_pass          data data matmul all_reduce tanh shadow_output
"""

from __future__ import annotations

from typing import Any

from minipd.dist.completion import completion
from minipd.dist.crossing import elsewhere
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import partition
from minipd.dist.placements import Replicate
from minipd.dist.sharding import local_shape
from minipd.dist.static.evaluation import Local
from minipd.dist.static.explicit import explicit
from minipd.dist.static.marks import mix2dist
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.value import Value
from minipd.passes.base import Pass
from minipd.passes.manager import PassManager
from minipd.passes.table import register_pass

__all__ = ["STAGES", "apply_completion_pass", "apply_dist2dense_pass", "apply_mix2dist_pass", "apply_partition_pass",
           "apply_remove_other_ranks_pass", "apply_reshard_pass", "stages"]

STAGES = ("mix2dist_pass", "completion_pass", "partition_pass", "reshard_insertion_pass", "remove_other_ranks_pass",
          "dist2dense_pass")


def apply_mix2dist_pass(program: Program) -> int:
    """Marks of `shard_tensor` become types; returns how many there were."""
    return mix2dist(program)


def apply_completion_pass(program: Program) -> int:
    """Every value gets its mesh and its placements; returns how many changed."""
    return completion(program)


def apply_partition_pass(program: Program) -> int:
    """Insert `dist_op.reshard` wherever an operation needs an operand in other placements; returns how many."""
    if not _is_dist(program):
        return 0
    new = explicit(program, _only_mesh(program))
    before, after = _names(program), _names(new)
    if before == after:
        return 0
    become(program, new)
    return max(after.count("dist_op.reshard") - before.count("dist_op.reshard"), 1)


def apply_reshard_pass(program: Program, rank: int | None = None) -> int:
    """Every `dist_op.reshard` in which a rank takes part becomes what it does for it; returns how many."""
    rank = current().rank if rank is None else rank
    return sum(_insert(op, rank) for op in list(program.walk()) if op.name() == "dist_op.reshard")


def apply_remove_other_ranks_pass(program: Program, rank: int | None = None) -> int:
    """Remove what is on meshes without the rank; returns how many operations went."""
    rank = current().rank if rank is None else rank
    gone: list[Operation] = []
    local: set[Value] = set()               # what another rank computes for itself
    for op in program.global_block():
        begins = op.name() == "dist_op.dtensor_to_local" and _is_elsewhere(op.operand_source(0), rank)
        if begins or any(v in local for v in op.operands_source()):
            local.update(op.results())
            gone.append(op)
        elif _is_others(op, rank):
            gone.append(op)
    for op in reversed(gone):
        op.erase()
    return len(gone)


def apply_dist2dense_pass(program: Program, rank: int | None = None) -> int:
    """Local shapes, local attributes, ordinary types; returns whether there was another."""
    rank = current().rank if rank is None else rank
    changed = _is_dist(program)
    if changed:
        apply_remove_other_ranks_pass(program, rank)
        become(program, partition(program, _only_mesh(program), rank))
    return changed


def stages(program: Program, rank: int | None = None) -> dict[str, Program]:
    """The program after each stage, by the name of the pass; `program` itself stays as it is."""
    found: dict[str, Program] = {}
    for name in STAGES:
        program = program.clone()
        manager = PassManager()
        manager.add_pass(name, {"rank": rank} if name in STAGES[3:] else {})
        manager.run(program)
        found[name] = program
    return found


class _Stage(Pass):
    """What the stages have in common: the framework needs them, and they only move data."""

    opt_level = 0


@register_pass("mix2dist_pass")
class Mix2Dist(_Stage):
    """Marks of shard_tensor become the types of inputs and parameters; of computed values, reshards."""

    def run(self, program: Program) -> int:
        return apply_mix2dist_pass(program)


@register_pass("completion_pass")
class Completion(_Stage):
    """Every value gets its mesh and its placements, by the SPMD rules."""

    def run(self, program: Program) -> int:
        return apply_completion_pass(program)


@register_pass("partition_pass")
class Partition(_Stage):
    """dist_op.reshard is inserted wherever an operation needs an operand in other placements."""

    def run(self, program: Program) -> int:
        return apply_partition_pass(program)


class _OfRank(_Stage):
    """rank: whose program it becomes; None: that of the rank that runs the pass."""

    def __init__(self, rank: int | None = None):
        self.rank = rank


@register_pass("reshard_insertion_pass")
class ReshardInsertion(_OfRank):
    """Every dist_op.reshard becomes what a rank does for it: collectives, slices, sends and receives."""

    def run(self, program: Program) -> int:
        return apply_reshard_pass(program, self.rank)


@register_pass("remove_other_ranks_pass")
class RemoveOtherRanks(_OfRank):
    """What is on meshes without the rank is removed."""

    def run(self, program: Program) -> int:
        return apply_remove_other_ranks_pass(program, self.rank)


@register_pass("dist2dense_pass")
class Dist2Dense(_OfRank):
    """Distributed types become ordinary ones, with local shapes and attributes: a program that the rank can run."""

    def run(self, program: Program) -> int:
        return apply_dist2dense_pass(program, self.rank)


# ------------------------------------------------------------------------------------------------- how they are done
def become(program: Program, new: Program) -> None:
    """Let `program` have the operations and the assumptions of `new`, which has none afterwards."""
    block = program.global_block()
    for op in reversed(block.ops):
        op.erase()
    block.take_over(new.global_block())
    program.constraints = new.constraints


def _is_dist(program: Program) -> bool:
    return any(isinstance(v.type(), DistTensorType) for op in program.walk() for v in op.results())


def _only_mesh(program: Program) -> ProcessMesh | None:
    """The mesh of all distributed values; None if there are several."""
    found = {kind.mesh for op in program.walk() for v in op.results()
             if isinstance(kind := v.type(), DistTensorType)}
    return found.pop() if len(found) == 1 else None


def _names(program: Program) -> list[str]:
    return [op.name() for op in program.walk()]


def _is_others(op: Operation, rank: int) -> bool:
    """Whether an operation has to do with values on other ranks' meshes only."""
    values = op.results() or op.operands_source()
    return bool(values) and all(_is_elsewhere(v, rank) for v in values)


def _is_elsewhere(value: Any, rank: int) -> bool:
    kind = value.type()
    return isinstance(kind, DistTensorType) and not kind.mesh.contains(rank)


def _insert(op: Operation, rank: int) -> bool:
    """Replace a reshard by the rank's part of it.  On a mesh without the rank nothing but a shape is left."""
    source, result = op.operand_source(0), op.result(0)
    src, dst = source.type(), result.type()
    if not isinstance(dst, DistTensorType):
        return False
    mesh, before = (src.mesh, src.placements) if isinstance(src, DistTensorType) else (
        dst.mesh, (Replicate(),) * dst.mesh.ndim)
    if not (mesh.contains(rank) or dst.mesh.contains(rank)):
        return False
    assert op.parent is not None
    build, line = Builder(op.parent, op), {"op_callstack": op.attributes["op_callstack"]} \
        if "op_callstack" in op.attributes else {}

    def call(row: Any, payloads: Any, attrs: dict) -> Any:
        values = [p if isinstance(p, Value) else build.full((), p, source.dtype) for p in payloads]
        out = build.call(row, values, attrs, line)
        return out if row.multi else out[0]
    if not mesh.contains(rank):
        x = elsewhere(source.shape, source.dtype, mesh, before)
    else:
        local = source
        if isinstance(src, DistTensorType):
            shape = local_shape(source.shape, mesh, before, rank)
            local = call(ROWS["dtensor_to_local"], [source], {"shape": shape})
        x = DistValue(local, source.shape, source.dtype, mesh, before)
    if mesh == dst.mesh:
        out = x.moved(dst.placements, call, rank)
    else:
        out = Local(rank).cross(x, dst.mesh, dst.placements, call)
    if not dst.mesh.contains(rank):
        made = call(ROWS["shape_only"], [], {"shape": result.shape, "dtype": result.dtype})
    else:
        made = call(ROWS["dtensor_from_local"], [out.local],
                    {"mesh": dst.mesh, "placements": dst.placements, "shape": result.shape})
    made.set_type(dst)
    made.stop_gradient = result.stop_gradient
    result.replace_all_uses_with(made)
    op.erase()
    return True
