"""The engine of a pipeline: a rank does its stage's jobs, and carries what crosses between stages.

It knows nothing of what a stage computes, and a stage nothing of other stages: so one engine serves eager and static
stages, and any schedule.  A send does not wait, a receive does: a rank waits only where its schedule lets it come too
early, and never for ever, because the schedule was checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement
from minipd.dist.value import DistValue
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.parallel.pipeline.check import check
from minipd.parallel.pipeline.model_slice import stage_meshes
from minipd.parallel.pipeline.schedule import SCHEDULES, Job, schedule
from minipd.parallel.pipeline.stage import Batch, Stage, Values
from minipd.parallel.pipeline.transfer import ACTIVATION, GRADIENT, Transfer
from minipd.parallel.step import Step

__all__ = ["Pipeline"]


class Pipeline(Step):
    """Trains by one step per call, as `Step`, on a mesh with an axis of stages.

    stage: this rank's.  mesh: the whole mesh.  placements: those of a batch on the stage's mesh.  name: the schedule's.
    timeline: what this rank did in the last step, a dict per job: rank, stage, type, micro, start and end in seconds
        since `began`, this process's clock (`time.perf_counter`) at the beginning of the step.
    """

    def __init__(self, stage: Stage, model: Any, optimizer: Any, mesh: ProcessMesh, placements: Sequence[Placement],
                 n_micro: int, name: str = "1F1B", axis: str = "pp"):
        super().__init__(model, optimizer, mesh, placements, n_micro)
        self.stage, meshes = stage, stage_meshes(mesh, axis)
        jobs = schedule(name, len(meshes), n_micro)
        check(jobs, n_micro, [SCHEDULES[name].kept(i, len(meshes), n_micro) for i in range(len(meshes))])
        self.jobs = jobs[stage.index]
        self.last = stage.index == len(meshes) - 1
        self.transfer = Transfer(meshes, stage.index)
        self.timeline: list[dict[str, Any]] = []
        self.began = 0.0

    def parameters(self) -> dict[str, Parameter]:
        return self.stage.parameters

    def programs(self) -> dict[str, str]:
        return self.stage.programs()

    def __call__(self, ids: np.ndarray, labels: np.ndarray) -> DistValue | None:
        """Train on one global batch, int [batch, seq].  Returns the loss, in parts; None but on the last stage."""
        self.enter()
        batches = self._batches(ids, labels)
        losses: list[DistValue] = []
        self.timeline, self.began = [], time.perf_counter()
        for job in self.jobs:
            if job.type == "forward":
                current().rng.set_micro(job.micro)
                losses += self._forward(job, batches[job.micro])
            elif job.type == "backward":
                self._backward(job)
            else:
                self._timed(job, self.stage.step)
        return _sum(losses)

    def evaluate(self, ids: np.ndarray, labels: np.ndarray) -> DistValue | None:
        """The loss of one global batch, in parts; None but on the last stage.  The micro-batches follow each other
        through the stages as in training, but for the way back."""
        losses: list[DistValue] = []
        for m, batch in enumerate(self._batches(ids, labels)):
            out = self.stage.evaluate(batch, self._receive_activations(m))
            losses += self._send_activations(out, m)
        return _sum(losses)

    def _batches(self, ids: np.ndarray, labels: np.ndarray) -> list[Batch]:
        n_tokens = self.count(labels)
        return [Batch(i, y, n_tokens) for i, y in self.parts(ids, labels)]

    def _forward(self, job: Job, batch: Batch) -> list[DistValue]:
        received = self._receive_activations(job.micro)
        out = self._timed(job, lambda: self.stage.forward(job.micro, batch, received))
        return self._send_activations(out, job.micro)

    def _receive_activations(self, m: int) -> Values:
        return self.transfer.receive(self.stage.inputs, self.stage.index - 1, m, ACTIVATION)

    def _send_activations(self, out: Values, m: int) -> list[DistValue]:
        """Give on what a stage has made; what the last one makes is the loss, and is returned."""
        if self.last:
            return list(out)
        self.transfer.send(out, self.stage.outputs, self.stage.index + 1, m, ACTIVATION)
        return []

    def _backward(self, job: Job) -> None:
        received = self.transfer.receive(self.stage.outputs, self.stage.index + 1, job.micro, GRADIENT)
        out = self._timed(job, lambda: self.stage.backward(job.micro, received))
        self.transfer.send(out, self.stage.inputs, self.stage.index - 1, job.micro, GRADIENT)

    def _timed(self, job: Job, run: Callable[[], Any]) -> Any:
        """`run()`, noted in the timeline: without the time in which it waits for other stages."""
        start = time.perf_counter()
        out = run()
        end = time.perf_counter()
        self.timeline.append({"rank": current().rank, "stage": self.stage.index, "type": job.type, "micro": job.micro,
                              "start": start - self.began, "end": end - self.began})
        return out


def _sum(losses: list[DistValue]) -> DistValue | None:
    """The losses of the micro-batches, added up in order."""
    if not losses:
        return None
    total = Tensor(losses[0])
    for loss in losses[1:]:
        total = total + Tensor(loss)
    return total.payload
