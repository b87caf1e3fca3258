"""Partition: from one global program to the program of one rank.

Partition *is* evaluation: the completed global program runs under the dist interpreter over a trace.  Each operation is
appended with local operands, after the reshard steps that its SPMD rule asks for.  No second set of rules, and what an
eager run communicates is what the program communicates.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
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
    placements it was read with; outputs keep the placements that the program gives them (see `output_placements`).
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
            state[op.attributes["parameter_name"].value] = out
        return out

    def write(op: Operation, payload: Any) -> None:
        if op.name() == "builtin.set_parameter":
            held = state[op.attributes["parameter_name"].value]
            if payload.placements != held.placements:
                raise ValueError(f"{op.attributes['parameter_name'].value}: expected to be written as it is read, "
                                 f"{held!r}, got {payload!r}")
        trace.write(op, payload.local if type(payload) is DistValue else payload)

    with using(ground=trace, middle=Dist(rank), grad=False):
        evaluate(program, current().run, read, write)
    remove_dead_ops(local)
    return local


def output_placements(program: Program) -> dict[str, tuple]:
    """How each output (`builtin.shadow_output`) of a completed program is placed."""
    return {op.attributes["output_name"].value: op.operand_source(0).type().placements      # type: ignore[attr-defined]
            for op in program.global_block() if op.name() == "builtin.shadow_output"}
