"""Where values must be resharded, made visible: operations of a completed program get what they need as it is.

The program is evaluated once more, under an interpreter that writes it anew.  Wherever eager execution would bring an
operand to other placements, it writes `dist_op.reshard`.  Values stay global, and the program is the same for all
ranks.  So what a rank's program communicates can be seen, counted and moved before it is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.dist.control_flow import LocalBranches
from minipd.dist.dialect import DistTensorType
from minipd.dist.interpreter import MARKS, PLACING, decomposed
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement, Replicate
from minipd.dist.spmd.table import Decompose
from minipd.dist.static.evaluation import OverPrograms, local_values
from minipd.dist.value import DistValue
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.evaluate import evaluate
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.schema import is_attribute_only
from minipd.ir.trace import Trace
from minipd.ir.traits import IrTrait
from minipd.ir.types import TensorType
from minipd.ir.value import Value

__all__: list[str] = []

Placements = tuple[Placement, ...]


class Explicit(OverPrograms):
    """The dist interpreter over a trace, where a payload's `local` is the global value."""

    def __init__(self, trace: Trace):
        super().__init__(0)
        self.trace = trace

    def run(self, lower: Callable, row: Any, payloads: Any, attrs: dict, mesh: ProcessMesh) -> Any:
        """One operator call on `mesh`."""
        if any(type(x) is DistValue and x.mesh != mesh for x in payloads):
            return self.run_between(lower, row, payloads, attrs)
        xs = [self.operand(x, mesh, i in row.shape_only) for i, x in enumerate(payloads)]
        self.rank = mesh.process_ids[0]
        if row.name in PLACING and attrs["mesh"] != mesh:
            return self.cross(xs[0], attrs["mesh"], tuple(attrs["placements"]), lower)
        call = self.plan_call(row, xs, attrs, mesh)
        if type(call) is Decompose:
            if call.inputs is not None:
                xs = [self.bring(x, p) if type(x) is DistValue else x for x, p in zip(xs, call.inputs, strict=True)]
            return decomposed(row, xs, attrs)
        inputs, outputs, metas, *_ = call
        for i, (x, wanted) in enumerate(zip(xs, inputs, strict=True)):
            if type(x) is DistValue and i not in row.shape_only:
                xs[i] = self.bring(x, wanted)
        if row.name in MARKS:
            return xs[0]
        out = lower(row, [x.local if type(x) is DistValue else x for x in xs], attrs)
        found = []
        for value, meta, placements in zip(out if row.multi else (out,), metas, outputs, strict=True):
            value.set_type(DistTensorType(tuple(meta.shape), meta.dtype, mesh, placements))
            found.append(DistValue(value, tuple(meta.shape), meta.dtype, mesh, placements))
        return tuple(found) if row.multi else found[0]

    def to_local(self, lower: Callable, row: Any, x: DistValue, attrs: dict) -> Any:
        return lower(row, [self.bring(x, x.placements).local], attrs)

    def from_local(self, lower: Callable, row: Any, x: Any, attrs: dict) -> DistValue:
        value = lower(row, [x.held().local if type(x) is DistValue else x], attrs)
        shape, mesh, placements = tuple(attrs["shape"]), attrs["mesh"], tuple(attrs["placements"])
        value.set_type(DistTensorType(shape, value.dtype, mesh, placements))
        return DistValue(value, shape, value.dtype, mesh, placements)

    def operand(self, x: Any, mesh: ProcessMesh, shape_only: bool) -> Any:
        """A payload as an operand, as `Dist.run` takes it."""
        if type(x) is DistValue:
            return x if shape_only else x.held()
        if not hasattr(x, "dtype"):
            return x
        return DistValue(x, tuple(x.shape), x.dtype, mesh, (Replicate(),) * mesh.ndim)

    def bring(self, x: DistValue, placements: Placements) -> DistValue:
        """x under other placements.  As everywhere, a Partial is resolved at most once."""
        x = x.held()
        if x.placements == placements:
            return x
        out = self.reshard(x, x.mesh, placements)
        if any(p.is_partial() for p in x.placements) and not any(p.is_partial() for p in placements):
            x.resolved = out
        return out

    def cross(self, x: DistValue, mesh: ProcessMesh, placements: Placements, lower: Callable) -> DistValue:
        return self.reshard(x.held(), mesh, placements)

    def reshard(self, x: DistValue, mesh: ProcessMesh, placements: Placements) -> DistValue:
        value = self.trace.run(ROWS["reshard"], [x.local], {"mesh": mesh, "placements": placements})
        value.set_type(DistTensorType(x.shape, x.dtype, mesh, placements))
        return DistValue(value, x.shape, x.dtype, mesh, placements)


class GlobalBranches(LocalBranches):
    """Branches and loops of the program of all ranks."""

    def elsewhere(self, op: Operation, env: dict) -> bool:
        return False


def explicit(program: Program, mesh: ProcessMesh | None) -> Program:
    """The completed `program`, which is left as it is, with every reshard written out.  mesh: see `partition`."""
    new = Program()
    trace = Trace(new)
    middle = Explicit(trace)

    def read(op: Operation) -> Any:
        value: Any = op.result(0)
        kind = value.type()
        made = trace.read(op, value.shape)
        made.set_type(kind)
        return DistValue(made, value.shape, value.dtype, kind.mesh, kind.placements) \
            if isinstance(kind, DistTensorType) else made

    def write(op: Operation, payload: Any) -> None:
        kind = op.operand_source(0).type()
        if type(payload) is DistValue and op.name() == "builtin.shadow_output" and isinstance(kind, DistTensorType):
            payload = middle.bring(payload, kind.placements)
        trace.write(op, payload.held().local if type(payload) is DistValue else payload)

    with using(ground=trace, middle=middle, grad=False), new.constraints.collect() as constraints:
        for c in program.constraints:
            constraints.add(c)
        evaluate(program, current().run, read, write, GlobalBranches(mesh, trace, 0))
    if mesh is not None:
        local = local_values(new)
        for op in new.walk():
            if not (IrTrait.CONSTANT in op.info.traits and is_attribute_only(op)):
                replicate_rest(op, mesh, local)
    return new


def replicate_rest(op: Operation, mesh: ProcessMesh, local: set[Value]) -> None:
    """Constants are on the one mesh, too, where every rank has them; what only a rank has is on none."""
    results: list[Value] = list(op.results())
    for value in results:
        kind: Any = value.type()
        if isinstance(kind, TensorType) and not isinstance(kind, DistTensorType) and value not in local:
            value.set_type(DistTensorType(kind.shape, kind.dtype, mesh, (Replicate(),) * mesh.ndim))
