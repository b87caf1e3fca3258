"""Partition: from one global program to the program of one rank.

Partition *is* evaluation: the completed global program runs under the dist interpreter over a trace.  Each operation is
appended with local operands, after the reshard steps that its SPMD rule asks for.  No second set of rules, and what an
eager run communicates is what the program communicates.

Where a program works on several meshes, a rank's program has what is on its own: the rest drops out, and what crosses
is sent and received.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.control_flow import LocalBranches, Stack, renewed
from minipd.dist.crossing import elsewhere
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate
from minipd.dist.sharding import local_shape
from minipd.dist.static.evaluation import Local
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.dce import remove_dead_ops
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace

__all__ = ["partition"]


def partition(program: Program, mesh: ProcessMesh | None, rank: int, left: dict[str, Stack] | None = None) -> Program:
    """The local program of `rank`.  `program` has been completed, and is left as it is.

    mesh: the mesh of a program that knows one; None for several.
    State and inputs keep their names; their shapes are those of the rank's shards.  State is written back under the
    placements it was read with; outputs keep the placements that the program gives them (see `output_types`).  State,
    inputs and outputs that are on meshes without the rank are not in its program.
    left: gets the stacks that the program leaves, and has those that it takes.
    Raises: ValueError for state that would be written otherwise than it is read, or is never read.
    """
    local = Program()
    trace = Trace(local)
    state: dict[str, Any] = {}

    def read(op: Operation) -> Any:
        value: Any = op.result(0)
        kind = value.type()
        if not isinstance(kind, DistTensorType):        # every rank has it
            out: Any = trace.read(op, value.shape)
        elif not kind.mesh.contains(rank):
            out = elsewhere(value.shape, value.dtype, kind.mesh, kind.placements)
        else:
            shape = local_shape(value.shape, kind.mesh, kind.placements, rank)
            out = DistValue(trace.read(op, shape), value.shape, value.dtype, kind.mesh, kind.placements)
        if op.name() == "builtin.parameter":
            state[op.attributes["parameter_name"].value] = renewed(out)
        return out

    def write(op: Operation, payload: Any) -> None:
        kind = op.operand_source(0).type()
        if type(payload) is Stack:
            branches.left[op.attributes["output_name"].value] = payload
            payload = payload.local
        elif type(payload) is not DistValue and mesh is not None:              # a constant
            payload = DistValue(payload, tuple(payload.shape), payload.dtype, mesh, (Replicate(),) * mesh.ndim)
        if op.name() == "builtin.set_parameter":
            name = op.attributes["parameter_name"].value
            payload = told_to_all(state.get(name), payload, ranks)
            check_state(name, state, payload, ranks)
        elif isinstance(kind, DistTensorType):
            payload = payload.moved(kind.placements, trace.run, rank)
        if type(payload) is not DistValue:
            trace.write(op, payload)
        elif payload.mesh.contains(rank):
            trace.write(op, payload.held().local)

    branches = LocalBranches(mesh, trace, rank, left)
    ranks = everybody(program)
    with using(ground=trace, middle=Local(rank), grad=False), local.constraints.collect() as constraints:
        for c in program.constraints:
            constraints.add(c)
        evaluate(program, current().run, read, write, branches)
    remove_dead_ops(local)
    return local


def everybody(program: Program) -> set[int]:
    """The ranks of all meshes of a completed program."""
    kinds = (v.type() for op in program.walk() for v in op.results())
    return {rank for kind in kinds if isinstance(kind, DistTensorType) for rank in kind.mesh.process_ids}


def told_to_all(old: Any, new: Any, ranks: set[int]) -> Any:
    """The new value of state that is on no mesh, as all ranks need it: how many steps there were, say, which those know
    that know whether a gradient was finite."""
    if type(new) is not DistValue or old is None or type(old) is DistValue or ranks <= set(new.mesh.process_ids):
        return new
    return current().run(ROWS["reshard"], [new], {"mesh": ProcessMesh(sorted(ranks)), "placements": (Replicate(),)})


def check_state(name: str, state: dict[str, Any], new: Any, ranks: set[int]) -> None:
    """Raise ValueError unless state is written on the mesh, and with the placements, with which it is read.  Of state
    that is on no mesh, all `ranks` must have the whole new value."""
    if name not in state:
        raise ValueError(f"state {name}: expected the program to read it before it is written, as {new!r}, "
                         "for a read tells how it is placed; let the new value depend on the old one's shape")
    old = state[name]
    if type(old) is type(new) is DistValue:
        if old.mesh != new.mesh:
            raise ValueError(f"state {name}: expected to be written on the mesh that it is read on, {old!r} on "
                             f"{old.mesh.text()} of the ranks {old.mesh.process_ids}, got {new!r} on {new.mesh.text()} "
                             f"of the ranks {new.mesh.process_ids}; reshard the new value to the mesh of the old one")
        if old.placements != new.held().placements:
            raise ValueError(f"state {name}: expected to be written as it is read, {old!r}, got "
                             f"{new.held()!r}; reshard the new value to the placements of the old one (match "
                             "does it)")
    elif type(new) is DistValue and type(old) is not DistValue and ranks <= set(new.mesh.process_ids) and all(
            p.is_replicated() for p in new.held().placements):
        return
    elif type(old) is DistValue or type(new) is DistValue:
        raise ValueError(f"state {name}: expected to be written as it is read, {old!r}, got {new!r}, which is "
                         f"{'on a mesh' if type(new) is DistValue else 'on none'}; place the state with shard_tensor "
                         "on the mesh where it is computed")


def output_types(program: Program) -> dict[str, Any]:
    """The (global) type of each output (`builtin.shadow_output`) of a completed program: shape, dtype, and mesh and
    placements if it is on a mesh."""
    return {op.attributes["output_name"].value: op.operand_source(0).type()                     # type: ignore[misc]
            for op in program.global_block() if op.name() == "builtin.shadow_output"}
