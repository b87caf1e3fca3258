"""Partition: from one global program to the program of one rank.

Partition *is* evaluation: the completed global program runs under the dist interpreter over a trace.  Each operation is
appended with local operands, after the reshard steps that its SPMD rule asks for.  No second set of rules, and what an
eager run communicates is what the program communicates.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.control_flow import LocalBranches, renewed
from minipd.dist.dialect import DistTensorType
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.ir.dce import remove_dead_ops
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace

__all__ = ["partition"]


def partition(program: Program, mesh: ProcessMesh, rank: int) -> Program:
    """The local program of `rank`.  `program` has been completed, and is left as it is.

    State and inputs keep their names; their shapes are those of the rank's shards.  State is written back under the
    placements it was read with; outputs keep the placements that the program gives them (see `output_types`).
    Raises: ValueError for state that would be written otherwise than it is read, or is never read.
    """
    local = Program()
    trace = Trace(local)
    state: dict[str, DistValue] = {}

    def read(op: Operation) -> DistValue:
        value: Any = op.result(0)
        kind = value.type()
        shape, _ = local_window(value.shape, mesh, kind.placements, rank)
        out = DistValue(trace.read(op, shape), value.shape, value.dtype, mesh, kind.placements)
        if op.name() == "builtin.parameter":
            state[op.attributes["parameter_name"].value] = renewed(out)
        return out

    def write(op: Operation, payload: Any) -> None:
        if type(payload) is not DistValue:              # a constant
            payload = DistValue(payload, tuple(payload.shape), payload.dtype, mesh, (Replicate(),) * mesh.ndim)
        if op.name() == "builtin.set_parameter":
            name = op.attributes["parameter_name"].value
            if name not in state:
                raise ValueError(f"state {name}: expected the program to read it before it is written, as {payload!r}, "
                                 "for a read tells how it is placed; let the new value depend on the old one's shape")
            if payload.held().placements != state[name].placements:
                raise ValueError(f"state {name}: expected to be written as it is read, {state[name]!r}, got "
                                 f"{payload.held()!r}; reshard the new value to the placements of the old one (match "
                                 "does it)")
        else:
            payload = payload.moved(op.operand_source(0).type().placements, trace.run, rank)    # type: ignore
        trace.write(op, payload.held().local)

    with using(ground=trace, middle=Dist(rank), grad=False), local.constraints.collect() as constraints:
        for c in program.constraints:
            constraints.add(c)
        evaluate(program, current().run, read, write, LocalBranches(mesh, trace))
    remove_dead_ops(local)
    return local


def output_types(program: Program) -> dict[str, DistTensorType]:
    """The (global) type of each output (`builtin.shadow_output`) of a completed program: shape, dtype, placements."""
    return {op.attributes["output_name"].value: op.operand_source(0).type()                     # type: ignore[misc]
            for op in program.global_block() if op.name() == "builtin.shadow_output"}
