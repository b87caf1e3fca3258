"""A stage run as programs: forward, backward, update and evaluation, made before the first step.

Every rank traces the whole model, on shapes alone, and cuts the same program (`cut.py`): so neighbours agree about what
crosses between them without asking.  Then it goes on with the part of its stage: completed on the stage's sub-mesh, cut
for the rank, compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.completion import complete
from minipd.dist.mesh import ProcessMesh
from minipd.dist.partition import output_types
from minipd.dist.placements import Placement, Replicate
from minipd.dist.sharding import local_window
from minipd.dist.static.rank_program import RankProgram
from minipd.dist.value import DistValue
from minipd.framework.meta import Meta
from minipd.framework.rank import current
from minipd.ir.operation import Operation
from minipd.ir.program import Program
from minipd.parallel.pipeline.cut import StageProgram, cut
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.programs import Kept, TrainingPrograms, append_stage_backward
from minipd.parallel.pipeline.stage import Batch, Boundary, Values
from minipd.parallel.program import LEARNING_RATE, gradient_name, loss_program, update_program
from minipd.parallel.step import training_state
from minipd.passes.fusion import fuse_forward

__all__ = ["StaticStage"]

PlacementsOf = Callable[[str, ProcessMesh], Sequence[Placement]]


class StaticStage:
    """One stage (see `stage.Stage`) of a model with `loss(ids, labels, n_tokens)`, as programs.

    Of the parameters of other stages only names and shapes matter.  placements: those of a batch on the stage's mesh.
    placements_of(name, mesh): those of a parameter on the mesh of its stage.  shape: of a micro-batch, (sequences,
    tokens).  fuse: with operators of their own for what the model composes (`fuse_forward`).  cinn: compiled into
    kernels, on all ranks of all stages at once.

    gradients: of the parameters, by name, added up since the last step; they may be Partial.
    """

    def __init__(self, part: ModelSlice, optimizer: Any, placements: Sequence[Placement], placements_of: PlacementsOf,
                 shape: tuple[int, int], fuse: bool = True, cinn: bool = False):
        self.optimizer, self.shape = optimizer, shape
        self.index, self.stages, self.mesh, self.parameters = part.index, len(part.meshes), part.mesh, part.parameters
        self.gradients: dict[str, DistValue] = {}
        self.kept: dict[int, Kept] = {}
        optimizer.prepare()

        program, trace = loss_program(part.model, shape, fuse=False, grad=True)
        stages = cut(program, part.stage_of, self.stages)[:self.index + 1]
        if fuse:
            for stage in stages:                # after the cut: nothing is fused across it
                fuse_forward(stage.program)
        own = stages[-1]
        self.inputs = boundaries_before(stages, self.mesh, placements_of, tuple(placements))
        split = {"ids": placements, "labels": placements, **{b.name: b.placements for b in self.inputs}}
        self.evaluation = RankProgram(own.program.clone(), trace, self.mesh, self.parameters, split, cinn=cinn)
        self.outputs = boundaries(own, self.evaluation.whole)
        self.given = ("loss",) if part.last else tuple(b.name for b in self.outputs)
        self.flows = [c.flows for c in own.inputs], [c.flows for c in own.outputs]
        self.with_gradient = append_stage_backward(
            own, [n for n, p in self.parameters.items() if not p.stop_gradient])
        split |= {gradient_name(b.name): b.placements for b in self.outputs}
        self.training = TrainingPrograms(own.program, trace, self.mesh, self.parameters, split, self.given, cinn)
        self.update = self._update(cinn)

    def _update(self, cinn: bool) -> RankProgram:
        """The optimizer's step, with gradients as the training program leaves them."""
        types = {n: self.training.outputs[gradient_name(n)] for n in self.with_gradient}
        state = training_state(self.parameters, self.optimizer)
        program, trace = update_program(self.optimizer, self.parameters, state,
                                        {n: Meta(t.shape, t.dtype) for n, t in types.items()})
        return RankProgram(program, trace, self.mesh, state,
                           {gradient_name(n): t.placements for n, t in types.items()}, cinn=cinn)

    # -------------------------------------------------------------------------------------------------------- jobs
    def forward(self, m: int, batch: Batch, received: Values) -> Values:
        """See `stage.Stage`."""
        found, self.kept[m] = self.training.run_forward(self._feed(batch, received, self.training))
        return tuple(found[name] for name in self.given)

    def backward(self, m: int, received: Values) -> Values:
        """See `stage.Stage`.

        Raises: RuntimeError if micro-batch m has not gone forward, or has come back already.
        """
        if m not in self.kept:
            raise RuntimeError(f"backward of micro-batch {m} on stage {self.index}: expected one that has gone forward "
                               f"and not come back, got {sorted(self.kept) or 'none'} in flight; check the schedule")
        flowing_in, flowing_out = self.flows
        given = {gradient_name(b.name): g for b, g, flows in zip(self.outputs, received, flowing_out, strict=True)
                 if flows}
        found = self.training.run_backward(self.kept.pop(m), given)
        back = [found.pop(gradient_name(b.name)) if flows else self._zeros(b)
                for b, flows in zip(self.inputs, flowing_in, strict=True)]
        for name in self.with_gradient:
            self._accumulate(name, found[gradient_name(name)])
        return tuple(back)

    def _accumulate(self, name: str, g: DistValue) -> None:
        """In the order of the micro-batches, each rank its own part: what is Partial stays so until the update."""
        total = self.gradients.setdefault(name, g)
        if total is not g:
            np.add(total.local, g.local, out=total.local)

    def _zeros(self, b: Boundary) -> DistValue:
        shape, _ = local_window(b.shape, self.mesh, b.placements, current().rank)
        return DistValue(np.zeros(shape, b.dtype), b.shape, b.dtype, self.mesh, b.placements)

    def step(self) -> None:
        """See `stage.Stage`.

        Raises: RuntimeError if there are no gradients.
        """
        missing = [n for n in self.with_gradient if n not in self.gradients]
        if missing:
            raise RuntimeError(f"update of stage {self.index}: expected a gradient of {missing[0]}, got none; run the "
                               "backward job of a micro-batch first")
        gradients, self.gradients = self.gradients, {}
        rate = self.optimizer.scalars()[0].payload
        self.update({LEARNING_RATE: rate, **{gradient_name(n): g for n, g in gradients.items()}})

    def evaluate(self, batch: Batch, received: Values) -> Values:
        """See `stage.Stage`."""
        found = self.evaluation(self._feed(batch, received, self.evaluation))
        return tuple(found[name] for name in self.given)

    def _feed(self, batch: Batch, received: Values, program: Any) -> dict[str, Any]:
        """What this stage reads of a micro-batch, and what came from the stage before.

        Raises: ValueError for a micro-batch of another shape than the programs were made for.
        """
        if batch.ids.shape != self.shape:
            raise ValueError(f"stage {self.index}: expected a micro-batch of {self.shape[0]} sequences of "
                             f"{self.shape[1]} tokens, for which the programs were made, got {list(batch.ids.shape)}")
        crossing = {b.name: v for b, v in zip(self.inputs, received, strict=True)}
        return {n: v for n, v in {**batch._asdict(), **crossing}.items() if n in program.inputs}

    def programs(self) -> dict[str, str]:
        """File name -> text: the completed global programs of the stage, this rank's own, and what became of them."""
        stage, rank = f"step.stage{self.index}", f"step.rank{current().rank}"
        return {f"{stage}.global.pir": self.training.whole.to_string("exact"),
                f"{stage}.update.global.pir": self.update.whole.to_string("exact"),
                **self.training.forward.texts(f"{rank}.forward"), **self.training.backward.texts(f"{rank}.backward"),
                **self.update.texts(f"{rank}.update")}


def boundaries_before(stages: Sequence[StageProgram], mesh: ProcessMesh, placements_of: PlacementsOf,
                      placements: tuple[Placement, ...]) -> tuple[Boundary, ...]:
    """What the last of these stages gets from the one before it.

    Completed stage by stage, each as its own ranks do it, on `mesh` instead of theirs, which has the same shape.
    """
    found: tuple[Boundary, ...] = ()
    for stage in stages[:-1]:
        placed = {"ids": placements, "labels": placements, **{b.name: b.placements for b in found}}

        def marks(op: Operation, placed: dict = placed) -> tuple[Placement, ...]:
            if op.name() == "builtin.parameter":
                return tuple(placements_of(op.attributes["parameter_name"].value, mesh))
            return placed.get(op.attributes["name"].value, (Replicate(),) * mesh.ndim)
        found = boundaries(stage, complete(stage.program.clone(), mesh, marks))
    return found


def boundaries(stage: StageProgram, completed: Program) -> tuple[Boundary, ...]:
    """What a stage hands to the next, of whose program `completed` is a completed copy."""
    types = output_types(completed)
    return tuple(Boundary(c.name, tuple(map(int, t.shape)), t.dtype, t.placements)
                 for c in stage.outputs for t in [types[c.name]])
