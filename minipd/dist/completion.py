"""Completion: give every value of a global program its placements.

The program is evaluated under the dist interpreter over metas: the rules that place an eager call place an operation of
a program, and nothing is computed or communicated.  The program itself does not change, only the types of its values;
but for reshards where two branches place a result differently.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.control_flow import Branches
from minipd.dist.dialect import DistTensorType
from minipd.dist.interpreter import Dist
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, check_placements
from minipd.dist.sharding import local_window
from minipd.dist.value import DistValue
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.ir.builtin import pushed_values
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.types import TensorType, VectorType

__all__ = ["complete"]

Marks = Callable[[Operation], tuple[Placement, ...]]


def complete(program: Program, mesh: ProcessMesh, marks: Marks) -> Program:
    """Annotate a global program in place and return it.

    marks(op): the placements of what an input (`pd_op.data`) or parameter (`builtin.parameter`) reads.  Other values
    get theirs from the SPMD rules, results of branches those that both branches have (see `control_flow`).
    What has to hold of symbolic dimensions so that they split evenly is added to the program's constraints.
    """
    with using(ground=MetaOnly(), middle=Dist(mesh.process_ids[0]), grad=False), program.constraints.collect():
        env = evaluate(program, current().run, lambda op: read_meta(op, mesh, marks(op)), lambda op, payload: None,
                       Branches(mesh))
    for value, payload in env.items():
        if not isinstance(value.type(), TensorType):        # an end of a stack
            continue
        placements = payload.placements if type(payload) is DistValue else (Replicate(),) * mesh.ndim
        value.set_type(DistTensorType(value.shape, value.dtype, mesh, placements))
    for op in program.walk():
        _complete_bundles(op)
    return program


def _complete_bundles(op: Operation) -> None:
    """A vector has the types of its members, and what is popped the type of what was pushed (which may have been
    resolved in between: that shows in what reads it)."""
    if op.name() == "builtin.combine":
        op.result(0).set_type(VectorType(tuple(v.type() for v in op.operands_source())))
    elif op.name() == "builtin.split":
        op.operand_source(0).set_type(VectorType(tuple(r.type() for r in op.results())))
    elif op.name() == "cf.tuple_pop":
        for result, pushed in zip(op.results(), pushed_values(op) or (), strict=True):
            result.set_type(pushed.type())


def read_meta(op: Operation, mesh: ProcessMesh, placements: tuple[Placement, ...]) -> DistValue:
    """The payload of an input, shapes only, as the first rank of the mesh sees it."""
    value: Any = op.result(0)
    placements = check_placements(placements, mesh, len(value.shape), user_error(op, "its marks"))
    shape, _ = local_window(value.shape, mesh, placements, mesh.process_ids[0])
    return DistValue(Meta(shape, value.dtype), value.shape, value.dtype, mesh, placements)
