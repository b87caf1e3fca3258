"""The programs of a pipeline stage: how a gradient is appended to its forward program, and how the two run apart.

Forward and backward are completed and cut for this rank as *one* program, as in a step without pipeline: so the
backward part uses what the forward part has resolved, and nothing is communicated twice.  Only then they are split, and
what backward reads of forward is kept between the runs, per micro-batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.static.rank_program import Feed, Runnable, ShardedProgram
from minipd.dist.value import DistValue
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.value import Value
from minipd.jit.joint import split_backward
from minipd.parallel.pipeline.cut import StageProgram
from minipd.parallel.program import gradient_name

__all__ = ["TrainingPrograms", "append_stage_backward"]

Kept = dict[str, np.ndarray]


def append_stage_backward(stage: StageProgram, wanted: Collection[str]) -> list[str]:
    """Append the backward part to the forward program of a stage.

    New inputs are the gradients of the stage's outputs (the loss needs none), new outputs those of its inputs and of
    the parameters `wanted`, each called `gradient_name` of what it belongs to.
    Returns the names of the parameters that have a gradient.
    """
    program = stage.program
    trace, values = Trace(program), {n: v for n, v in program.parameters().items() if n in wanted}
    data = {op.attributes["name"].value: op.result(0) for op in program.global_block() if op.name() == "pd_op.data"}
    received: dict[str, Value] = {c.name: data[c.name] for c in stage.inputs if c.flows}
    losses, seeds = _losses(stage, trace)
    if not losses or not (values or received):
        return []
    asked: dict[str, Value] = {**values, **received}
    found = dict(zip(asked, append_backward(program, losses, list(asked.values()), seeds, pin=True, trace=trace),
                     strict=True))
    build = Builder(program.global_block())
    for name in values:
        if found[name] is not None:
            build.output(gradient_name(name), found[name])                              # type: ignore[arg-type]
    for name, value in received.items():
        # whole, as the value came: of tp's ranks each has a part of the gradient, and the stage before could not add
        # up parts of ranks that it does not see
        g = found[name] or build.call(ROWS["full_like"], (value,), {"value": 0.0})[0]
        build.output(gradient_name(name), build.call(ROWS["match"], (g, value), {})[0])
    return [name for name in values if found[name] is not None]


def _losses(stage: StageProgram, trace: Trace) -> tuple[list[Value], list[Value | None]]:
    """What is differentiated: the outputs through which a gradient flows, with inputs for their gradients."""
    program, flows = stage.program, {c.name: c.flows for c in stage.outputs}
    losses: list[Value] = []
    seeds: list[Value | None] = []
    for op in program.global_block().ops:
        if op.name() == "builtin.shadow_output":
            name, value = op.attributes["output_name"].value, op.operand_source(0)
            if flows.get(name, not value.stop_gradient):
                losses.append(value)
                seeds.append(trace.input(gradient_name(name), value) if name in flows else None)
    return losses, seeds


class TrainingPrograms(ShardedProgram):
    """A global program with a forward and a backward part, run as two.

    forward_outputs: the outputs of the forward part, which all stand before the backward part.  cinn: see `Runnable`.
    The others are those of `ShardedProgram`.
    """

    def __init__(self, program: Program, trace: Trace, mesh: ProcessMesh, tensors: Mapping[str, Tensor],
                 split: Mapping[str, Sequence[Placement]], forward_outputs: Collection[str], cinn: bool = False):
        super().__init__(program, trace, mesh, tensors, split)
        local = self.local.clone()
        joint = split_backward(local, _ahead(local, forward_outputs), {})
        _drop_unused_inputs(joint.forward)          # the gradients that only the backward program reads
        self.saved, self.feeds = joint.saved, joint.feeds
        self.forward, self.backward = Runnable(joint.forward, cinn), Runnable(joint.backward, cinn)

    def run_forward(self, feed: Feed) -> tuple[dict[str, DistValue], Kept]:
        """(the outputs, in parts; what `run_backward` needs).   feed: see `ShardedProgram.arrays`."""
        arrays = self.arrays(feed)
        found = self.forward.executor.run({n: arrays[n] for n in self.forward.executor.inputs}, self.scope)
        kept = {n: found.pop(n) for n in self.saved}
        return self.values(found, {}), kept | {n: arrays[n] for n in self.feeds if n in arrays}

    def run_backward(self, kept: Kept, gradients: Mapping[str, DistValue]) -> dict[str, DistValue]:
        """The outputs of the backward part, in parts.  gradients: by the names of its inputs."""
        feed = kept | {name: self._part(name, g) for name, g in gradients.items()}
        executor = self.backward.executor
        return self.values(executor.run({n: feed[n] for n in executor.inputs}, self.scope), {})


def _ahead(local: Program, outputs: Collection[str]) -> list[Operation]:
    """The operations of the forward part: all up to its last output."""
    ops = local.global_block().ops
    entry = [i for i, op in enumerate(ops) if op.name() in ("pd_op.data", "builtin.parameter")
             or op.name() == "builtin.shadow_output" and op.attributes["output_name"].value in outputs]
    return ops[:max(entry, default=-1) + 1]


def _drop_unused_inputs(program: Program) -> None:
    for op in program.global_block():
        if op.name() == "pd_op.data" and op.result(0).use_empty():
            op.erase()

