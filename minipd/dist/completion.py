"""Completion: give every value of a global program its mesh and its placements.

The program is evaluated under the dist interpreter over metas: the rules that place an eager call place an operation of
a program, and nothing is computed or communicated.  The program itself does not change, only the types of its values;
but for reshards where two branches place a result differently.

An input that nobody has placed is placed by what is marked behind it (`infer_sources`).  What is left then is
replicated, if the program knows one mesh.  If it knows several, it stays an ordinary tensor, which every rank has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.control_flow import Branches, Stack
from minipd.dist.dialect import DistTensorType
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate, check_placements, whole
from minipd.dist.spmd.inference import infer_backward
from minipd.dist.static.evaluation import Survey, local_values, placed_meta
from minipd.dist.static.marks import SOURCES, mix2dist
from minipd.dist.value import DistValue
from minipd.framework.context import MetaOnly, using
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.ir.builtin import pushed_values
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation, user_error
from minipd.ir.program import Program
from minipd.ir.schema import op_attrs, result_values, tensor_operands
from minipd.ir.types import TensorType, VectorType
from minipd.ir.value import Value

__all__ = ["complete", "completion"]

Placements = tuple[Placement, ...]
#: for an input or a parameter: placements (on the one mesh), a mesh and placements, or None for what no one places
Marks = Callable[[Operation], Placements | tuple[ProcessMesh, Placements] | None]


def complete(program: Program, mesh: ProcessMesh | None, marks: Marks, left: dict[str, Stack] | None = None) -> Program:
    """Place inputs and state, annotate everything else; in place.  Returns the program.

    marks(op): where what an input (`pd_op.data`) or parameter (`builtin.parameter`) reads is, and how.  `mesh` is where
    placements alone are.  Marks in the program (`dist_op.shard_tensor`) count as well.
    Other values get theirs from the SPMD rules, results of branches those that both branches have (`control_flow`).
    What has to hold of symbolic dimensions so that they split evenly is added to the program's constraints.
    left: gets the stacks that the program leaves, and has those that it takes.
    """
    for op in program.global_block():
        if op.name() in SOURCES and (found := marks(op)) is not None:
            on, placements = found if isinstance(found[0], ProcessMesh) else (mesh, found)
            assert on is not None, f"marks: expected a mesh with {placements}, for the program has none of its own"
            place(op, on, placements)                                               # type: ignore[arg-type]
    mix2dist(program)
    if mesh is not None:
        replicate_sources(program, mesh)        # the caller has said all there is to say
    completion(program, left)
    return program


def place(op: Operation, mesh: ProcessMesh, placements: Placements) -> None:
    """Give an input or a parameter its distributed type."""
    value: Any = op.result(0)
    placements = check_placements(placements, mesh, len(value.shape), user_error(op, "its marks"))
    value.set_type(DistTensorType(value.shape, value.dtype, mesh, placements))


def completion(program: Program, left: dict[str, Stack] | None = None) -> int:
    """Give types to what has none yet, in place; returns how many values got one.

    A program in which no value is on a mesh is left as it is.
    """
    infer_sources(program)
    found = meshes(program)
    if not found:
        return 0
    only = found[0] if len(found) == 1 else None
    if only is not None:
        replicate_sources(program, only)
    branches = Branches(only, left)

    def write(op: Operation, payload: Any) -> None:
        if type(payload) is Stack:
            branches.left[op.attributes["output_name"].value] = payload
    with using(ground=MetaOnly(), middle=Survey(), grad=False), program.constraints.collect():
        env = evaluate(program, current().run, read_meta, write, branches)
    changed, local = 0, local_values(program)
    for value, payload in env.items():
        if not isinstance(value.type(), TensorType):        # an end of a stack
            continue
        if type(payload) is DistValue:
            kind: Any = DistTensorType(value.shape, value.dtype, payload.mesh, payload.placements)
        elif only is not None and value not in local:
            kind = DistTensorType(value.shape, value.dtype, only, (Replicate(),) * only.ndim)
        else:
            continue
        changed += value.type() != kind
        value.set_type(kind)
    for op in program.walk():
        _complete_bundles(op)
    return changed


def replicate_sources(program: Program, mesh: ProcessMesh) -> None:
    """Inputs and parameters that are on no mesh yet are replicated on this one."""
    for op in program.global_block():
        if op.name() in SOURCES and not isinstance(op.result(0).type(), DistTensorType):
            place(op, mesh, (Replicate(),) * mesh.ndim)


def infer_sources(program: Program) -> None:
    """Place inputs and parameters that nobody has placed by what is marked behind them.

    From the last operation to the first: where `shard_tensor` has marked what is computed, the operands are wanted so
    that it comes out as it is marked.
    """
    wanted: dict[Value, tuple[ProcessMesh, Placements]] = {}
    for op in reversed(program.global_block().ops):
        if op.name() == "dist_op.reshard" and "marked" in op.attributes:
            attrs = op_attrs(op)
            wanted.setdefault(op.operand_source(0), (attrs["mesh"], whole(attrs["placements"])))
        elif op.row is not None and (asked := [r for r in result_values(op) if r in wanted]):
            mesh = wanted[asked[0]][0]
            results = [wanted[r][1] if r in wanted and wanted[r][0] == mesh else None for r in result_values(op)]
            operands = tensor_operands(op)
            needed = infer_backward(op.row, operands, results, op_attrs(op), mesh).inputs   # type: ignore[arg-type]
            for value, placements in zip(operands, needed, strict=True):
                wanted.setdefault(value, (mesh, placements))
        elif op.name() in SOURCES and op.result(0) in wanted and not isinstance(op.result(0).type(), DistTensorType):
            place(op, *wanted[op.result(0)])


def meshes(program: Program) -> list[ProcessMesh]:
    """The meshes that a program mentions: in types of inputs and parameters, and in reshards."""
    found: dict[ProcessMesh, None] = {}
    for op in program.walk():
        if op.name() in SOURCES and isinstance(kind := op.result(0).type(), DistTensorType):
            found.setdefault(kind.mesh)
        elif op.name() in ("dist_op.reshard", "dist_op.shard_tensor"):
            found.setdefault(op_attrs(op)["mesh"])
    return list(found)


def _complete_bundles(op: Operation) -> None:
    """A vector has the types of its members, and what is popped the type of what was pushed (which may have been
    resolved in between: that shows in what reads it)."""
    if op.name() == "builtin.combine":
        op.result(0).set_type(VectorType(tuple(v.type() for v in op.operands_source())))
    elif op.name() == "builtin.split":
        op.operand_source(0).set_type(VectorType(tuple(r.type() for r in op.results())))
    elif op.name() == "cf.tuple_pop":
        for result, pushed in zip(op.results(), pushed_values(op) or op.results(), strict=True):    # or another's stack
            result.set_type(pushed.type())


def read_meta(op: Operation) -> DistValue | Meta:
    """The payload of an input, shapes only, as the first rank of its mesh sees it."""
    value: Any = op.result(0)
    kind = value.type()
    if isinstance(kind, DistTensorType):
        return placed_meta(value.shape, value.dtype, kind.mesh, kind.placements)
    return Meta(value.shape, value.dtype)
