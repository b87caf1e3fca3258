"""Instructions: the operations of a program, prepared.

Everything that does not depend on a run is found once: which kernel, the attributes (looked through constants), in
which slot of the run's list each value stands, what may be let go of afterwards.  Constants that only serve as
attributes, and the bundles of variadic calls, are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minipd.executor.frame import Frame
from minipd.executor.liveness import ends, unbundled
from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, substitute_all
from minipd.framework.row import Row
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.schema import is_attribute_only, op_attrs, tensor_operands
from minipd.ir.traits import IrTrait
from minipd.ir.types import VectorType
from minipd.ir.value import Value

__all__: list[str] = []


class Instruction:
    """One step of a run: `execute(frame)` reads and writes slots; afterwards the slots `dead` are emptied and in the
    slots `shape_only` a stand-in of the same shape takes the place of the values."""

    __slots__ = ("dead", "execute", "op", "results", "shape_only")

    def __init__(self, op: Operation, execute: Callable[[Frame], None], results: tuple[int, ...]):
        self.op, self.execute, self.results = op, execute, results
        self.dead: tuple[int, ...] = ()
        self.shape_only: tuple[int, ...] = ()


class Preparation:
    """Hands out slots and prepares blocks."""

    def __init__(self) -> None:
        self.slots: dict[Value, int] = {}

    def slot(self, value: Value) -> int:
        return self.slots.setdefault(value, len(self.slots))

    def block(self, block: Block) -> list[Instruction]:
        """The instructions of a block.

        Raises: ValueError for an operation that cannot be executed, naming it.
        """
        last = ends(block)
        prepared: list[Instruction] = []
        for op in block:
            if op.name() in SKIPPED or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
                continue
            make = BY_NAME.get(op.name(), _call if op.row is not None else None)
            if make is None:
                raise ValueError(f"executor: expected operators of the table and of the dialects builtin and cf, got "
                                 f"{op.name()}; lower it first")
            step = Instruction(op, make(self, op), tuple(map(self.slot, op.results())))
            step.dead = tuple(map(self.slot, last.dead.get(op, ())))
            step.shape_only = tuple(map(self.slot, last.shape_only.get(op, ())))
            prepared.append(step)
        return prepared


# --------------------------------------------------------------------------------------------- calls of rows
def _call(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    row = op.row
    assert row is not None
    values, attrs = tensor_operands(op), op_attrs(op)
    inputs = [prepare.slot(v) for v in values]
    results = [prepare.slot(r) for r in op.results()]
    symbolic = is_symbolic(attrs)
    kernel: Any = row.kernel if row.comm else kernel_for(row, values)
    several = row.multi and not isinstance(op.result(0).type(), VectorType)
    first = results[0]

    def execute(frame: Frame) -> None:
        slots = frame.slots
        now = substitute_all(attrs, frame.bindings) if symbolic else attrs
        operands = [slots[i] for i in inputs]
        if row.comm:
            operands.insert(0, frame.communicator(row))
        result = kernel(*operands, **now)
        if several:
            for i, array in zip(results, result, strict=True):
                slots[i] = array
        else:
            slots[first] = result if row.multi or type(result) is np.ndarray else np.asarray(result)
    return execute


def kernel_for(row: Row, values: list[Value]) -> Callable:
    """The kernel for the dtype of the row's key operand; rows without operands have one."""
    if row.key >= len(values):
        assert row.kernel is not None
        return row.kernel
    return row.kernels[dtypes.of(values[row.key].dtype).code]


# ---------------------------------------------------------------------------------- bundles, state, in and out
def _split(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    results = [prepare.slot(r) for r in op.results()]
    vector = op.operand_source(0)
    parts = unbundled([vector])
    sources = [prepare.slot(v) for v in parts]
    together = parts == [vector]            # the slot holds a tuple, not one array of what was combined

    def execute(frame: Frame) -> None:
        slots = frame.slots
        arrays = slots[sources[0]] if together else [slots[i] for i in sources]
        for i, array in zip(results, arrays, strict=True):
            slots[i] = array
    return execute


def _data(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    name, slot = op.attributes["name"].value, prepare.slot(op.result(0))

    def execute(frame: Frame) -> None:
        frame.slots[slot] = frame.feed[name]
    return execute


def _parameter(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    name = op.attributes["parameter_name" if op.name() == "builtin.parameter" else "tensor_name"].value
    slot, value = prepare.slot(op.result(0)), op.result(0)

    def execute(frame: Frame) -> None:
        frame.slots[slot] = frame.read_state(name, value)
    return execute


def _set_parameter(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    name, slot = op.attributes["parameter_name"].value, prepare.slot(op.operand_source(0))

    def execute(frame: Frame) -> None:
        frame.writes[name] = frame.slots[slot]
        frame.keep((frame.slots[slot],))
    return execute


def _output(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    fetched = op.name() == "pd_op.fetch"
    name = op.attributes["name" if fetched else "output_name"].value
    slot = prepare.slot(op.operand_source(0))
    result = prepare.slot(op.result(0)) if fetched else None

    def execute(frame: Frame) -> None:
        frame.outputs[name] = frame.slots[slot]
        frame.keep((frame.slots[slot],))
        if result is not None:
            frame.slots[result] = frame.slots[slot]
    return execute


# ------------------------------------------------------------------------------------------------ control flow
def _if(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    condition = prepare.slot(op.operand_source(0))
    results = [prepare.slot(r) for r in op.results()]
    branches = []
    for region in op.regions:
        steps = prepare.block(region.front())
        end = region.front().back()
        yielded = [] if end is None or end.name() != "cf.yield" else [prepare.slot(v) for v in end.operands_source()]
        inside = [prepare.slot(v) for v in dict.fromkeys(v for o in region.front() for v in o.results())]
        branches.append((steps, yielded, inside))

    def execute(frame: Frame) -> None:
        slots = frame.slots
        steps, yielded, inside = branches[0 if slots[condition] else 1]
        frame.run(steps)
        arrays = [slots[i] for i in yielded]
        for i, array in zip(results, arrays, strict=True):
            slots[i] = array
        frame.empty(inside)
    return execute


def _stack_create(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    results = [prepare.slot(r) for r in op.results()]

    def execute(frame: Frame) -> None:
        stack: list[Any] = []
        for i in results:               # both ends are the stack itself
            frame.slots[i] = stack
    return execute


def _tuple_push(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    inlet, *values = map(prepare.slot, op.operands_source())

    def execute(frame: Frame) -> None:
        arrays = tuple(frame.slots[i] for i in values)
        frame.slots[inlet].append(arrays)
        frame.keep(arrays)
    return execute


def _tuple_pop(prepare: Preparation, op: Operation) -> Callable[[Frame], None]:
    outlet = prepare.slot(op.operand_source(0))
    results = [prepare.slot(r) for r in op.results()]

    def execute(frame: Frame) -> None:
        arrays = frame.slots[outlet].pop()
        for i, array in zip(results, arrays, strict=True):
            frame.slots[i] = array
        frame.let_go(arrays)
    return execute


#: bundles are looked through, and what a region yields is taken by the operation that owns it
SKIPPED = ("builtin.combine", "cf.yield")
BY_NAME: dict[str, Callable[[Preparation, Operation], Callable[[Frame], None]]] = {
    "builtin.split": _split, "pd_op.data": _data, "builtin.parameter": _parameter, "builtin.constant": _parameter,
    "builtin.set_parameter": _set_parameter, "builtin.shadow_output": _output, "pd_op.fetch": _output, "pd_op.if": _if,
    "cf.stack_create": _stack_create, "cf.tuple_push": _tuple_push, "cf.tuple_pop": _tuple_pop,
}
