"""Cutting a forward program into the programs of pipeline stages.

The program is that of a micro-batch, global, as the model was traced.  Where its parameters live says where everything
is computed: an operation belongs to the latest stage among the parameters and values that it reads, and the layer that
it was traced in.  (By what they read alone, the first operations of a layer that starts with a norm would belong to the
stage before, and what they make would cross beside what they read.)  What depends on no parameter (masks, positions,
the labels) belongs to no stage: each one that reads it has a copy, for it is cheap, and only activations should travel.

A value that a later stage reads *crosses*.  Stages talk to their neighbours only, so one that stage 2 reads of stage 0
is handed on by stage 1, and its gradient comes back the same way; each stage adds what it finds itself.

    stage 0                               stage 1                               stage 2
    h = ids @ a                           crossing_0 = input                    crossing_0, crossing_1 = inputs
    output crossing_0 = h                 y = crossing_0 @ b                    output loss = crossing_0 + crossing_1
                                          output crossing_0, crossing_1 = y
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from minipd.framework.row import ROWS
from minipd.ir.builder import Builder
from minipd.ir.dce import remove_dead_ops
from minipd.ir.mapping import IrMapping, clone_operation
from minipd.ir.operation import Operation, captured, user_error
from minipd.ir.program import Program
from minipd.ir.reach import spread
from minipd.ir.schema import is_pure, result_values, tensor_operands
from minipd.ir.value import Value

__all__ = ["Crossing", "StageProgram", "cut"]

COMBINE = "builtin.combine"


class Crossing(NamedTuple):
    """What one stage hands to the next: an output there and an input here, both called `name`.

    flows: whether the loss has a gradient with respect to it that some parameter before wants.
    """

    name: str
    flows: bool


class StageProgram(NamedTuple):
    """The forward program of one stage.  inputs: what comes from the stage before.  outputs: what goes to the next."""

    program: Program
    inputs: tuple[Crossing, ...]
    outputs: tuple[Crossing, ...]


def cut(program: Program, stage_of: Callable[[str], int | None], stages: int) -> list[StageProgram]:
    """The programs of all stages; `program` is left as it is.

    stage_of: name of a parameter -> its stage; None for one of which every stage that reads it has a copy.  The outputs
    of the program are the last stage's.
    Raises: ValueError if `stage_of` names no stage; NotImplementedError if the program writes state.
    """
    whole = program.clone()
    remove_dead_ops(whole)              # what nobody reads must not cross
    found = Assigned(whole, stage_of, stages)
    return [found.program_of(stage) for stage in range(stages)]


class Assigned:
    """A program with the stage of each operation.

    stage: of the operations that have one.  crossing: value -> (name, the last stage that reads it), in order.
    """

    def __init__(self, whole: Program, stage_of: Callable[[str], int | None], stages: int):
        self.whole, self.stages = whole, stages
        self.layers = stages_of_layers({name: self._checked(name, stage_of(name)) for name in whole.parameters()})
        self.stage: dict[Operation, int] = {}
        for op in whole.global_block():
            stage = self._stage(op)
            if stage is not None:
                self.stage[op] = stage
        last: dict[Value, int] = {}
        for op, stage in self.stage.items():
            for value in reads(op):
                if self.of(value, stage) < stage:
                    last[value] = max(stage, last.get(value, 0))
        ordered: list[Value] = [v for op in whole.global_block() for v in op.results() if v in last]
        self.crossing = {v: (f"crossing_{i}", last[v]) for i, v in enumerate(ordered)}
        self.flowing = flowing(whole)

    def _checked(self, name: str, stage: int | None) -> int | None:
        if stage is not None and not 0 <= stage < self.stages:
            raise ValueError(f"parameter {name}: expected stage_of to give a stage from 0 to {self.stages - 1}, got "
                             f"{stage}")
        return stage

    def _stage(self, op: Operation) -> int | None:
        """The stage that an operation belongs to; None: every stage that reads it."""
        if op.name() == "builtin.parameter":
            return self.layers[op.attributes["parameter_name"].value]
        if op.name() == "builtin.set_parameter":
            raise NotImplementedError(user_error(
                op, f"expected a forward program that writes no state, got a write of "
                    f"{op.attributes['parameter_name'].value}; pipeline stages support no running statistics"))
        if op.name() == COMBINE:
            return None                 # no value, only a way to list operands: it goes with who reads it
        if not is_pure(op):
            return self.stages - 1      # the outputs
        read = [self.stage[d] for v in reads(op) if (d := v.get_defining_op()) in self.stage]
        return max(*read, self.layers.get(layer_of(op)) or 0) if read else None

    def of(self, value: Value, otherwise: int) -> int:
        """The stage that computes a value; `otherwise` if all do that read it."""
        return self.stage.get(value.get_defining_op(), otherwise)           # type: ignore[arg-type]

    def program_of(self, stage: int) -> StageProgram:
        """The program of one stage."""
        inputs = [v for v, (_, last) in self.crossing.items() if self.of(v, stage) < stage <= last]
        outputs = [v for v, (_, last) in self.crossing.items() if self.of(v, stage) <= stage < last]
        program, mapping = Program(), IrMapping()
        for constraint in self.whole.constraints:
            program.constraints.add(constraint)
        block = program.global_block()
        build = Builder(block)
        for v in inputs:
            mapping.add(v, build.data(self.crossing[v][0], v.shape, v.dtype, v.stop_gradient))
        for op in self._operations(stage):
            block.append(clone_operation(op, mapping))
        for v in outputs:
            inside = mapping.look_up(v)
            # never Partial: the parts would cross, and be added up again by each stage that reads the value
            whole, = build.call(ROWS["match"], (inside, inside), {})
            build.output(self.crossing[v][0], whole)
        return StageProgram(program, self._crossings(inputs), self._crossings(outputs))

    def _operations(self, stage: int) -> list[Operation]:
        """What the stage computes, in order: its own operations, and copies of those without a stage that it reads."""
        found: list[Operation] = []
        read: set[Value] = set()
        for op in reversed(self.whole.global_block().ops):
            own = self.stage.get(op)
            if own == stage or own is None and not read.isdisjoint(op.results()):
                found.append(op)
                read.update(op.operands_source(), captured(op) if op.regions else ())
        return found[::-1]

    def _crossings(self, values: list[Value]) -> tuple[Crossing, ...]:
        return tuple(Crossing(self.crossing[v][0], v in self.flowing) for v in values)


def stages_of_layers(parameters: Mapping[str, int | None]) -> dict[str, int | None]:
    """The stage of each parameter, and of each layer: that of all parameters in it, None if they are on several.

    >>> stages_of_layers({"h.0.w": 0, "h.1.w": 1, "h.1.b": 1})
    {'h.0.w': 0, 'h.0': 0, 'h': None, 'h.1.w': 1, 'h.1': 1, 'h.1.b': 1}
    """
    found: dict[str, int | None] = {}
    for name, stage in parameters.items():
        while name:
            found[name] = stage if found.get(name, stage) == stage else None
            name = name.rpartition(".")[0]
    return found


def layer_of(op: Operation) -> str:
    """The layer that an operation was traced in, `llama.layers.0`; "" for none."""
    path = op.attributes.get("struct_name")
    return "" if path is None else path.value.strip("/").replace("/", ".")


def reads(op: Operation) -> list[Value]:
    """The values that an operation reads, in its regions too, lists of operands taken apart."""
    found: list[Value] = []
    for value in (*op.operands_source(), *(captured(op) if op.regions else ())):
        source = value.get_defining_op()
        found += source.operands_source() if source is not None and source.name() == COMBINE else [value]
    return found


def flowing(program: Program) -> set[Value]:
    """The values through which gradients flow: from the outputs of the program back to a parameter that wants one."""
    block = program.global_block()
    ahead: set[Value] = {v for v in program.parameters().values() if not v.stop_gradient}
    spread(block, ahead)
    found: set[Value] = set()
    for op in reversed(block.ops):
        if op.name() == "builtin.shadow_output":
            found.update(v for v in op.operands_source() if v in ahead)
        elif op.regions and not found.isdisjoint(op.results()):
            found.update(v for v in captured(op) if v in ahead)
        elif op.row is not None and op.row.has_vjp and not found.isdisjoint(result_values(op)):
            found.update(v for v in _given_gradients(op) if v in ahead)
    return found


def _given_gradients(op: Operation) -> list[Value]:
    """The operands to which the operation's gradient rules give a gradient (of others only the shape is read, say)."""
    values = tensor_operands(op)
    assert op.row is not None
    targets = {call.target for call in op.row.calls((1 << len(values)) - 1)}
    return values if None in targets else [v for i, v in enumerate(values) if i in targets]
