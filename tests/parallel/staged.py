"""Training a model in static stages on simulated ranks, and the same on one rank to compare with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minipd.dist.placements import Replicate
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.models.placements import batch_placements
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.optimizer import AdamW
from minipd.parallel.pipeline.clip import ClipGradByStagesNorm
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.static_stage import StaticStage
from minipd.parallel.step import EagerStep, shard_model

CLIP, RATE = 0.5, 3e-3
ADAM = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-5, "weight_decay": 0.1}
FLOAT64 = np.dtype("float64")


class Run(NamedTuple):
    """What a rank knows of a run.   gradients: of the first step, whole.  counts: collectives and messages of the last.
    evaluated: the first batch's loss after it.  steps: how many the optimizer has counted."""

    losses: list[float]
    gradients: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]
    counts: dict[str, int]
    evaluated: float
    steps: int


def replicated(name, mesh):
    return [Replicate()] * mesh.ndim


def build(make, mesh, stage_of, shape, n_micro, placements_of=replicated, schedule="1F1B", cinn=False) -> Pipeline:
    """The engine with a static stage.   make(): the model, equal on every rank.   shape: of a global batch."""
    part = ModelSlice(make(), mesh, stage_of, placements_of)
    optimizer = AdamW(RATE, parameters=list(part.parameters.values()), grad_clip=ClipGradByStagesNorm(CLIP, mesh),
                      **ADAM)
    placements = batch_placements(part.mesh)
    stage = StaticStage(part, optimizer, placements, placements_of, (shape[0] // n_micro, shape[1]), cinn=cinn)
    return Pipeline(stage, part.model, optimizer, mesh, placements, n_micro, schedule)


def staged(make, mesh, stage_of, batches, n_micro, **options) -> list[Run]:
    """Trained in stages on simulated ranks; a rank knows the parameters of its stage."""
    def run(whole):
        step = build(make, whole, stage_of, batches[0][0].shape, n_micro, **options)

        def gradients():
            return {n: ROWS["match"](Tensor(g), step.stage.parameters[n]).numpy()
                    for n, g in step.stage.gradients.items()}
        return train(step, batches, step.stage, gradients)
    return simulate(mesh, run, FLOAT64)


def alone(make, batches, n_micro) -> Run:
    """The same on one rank, operator by operator."""
    def run(mesh):
        model = make()
        shard_model(model, mesh, replicated)
        optimizer = AdamW(RATE, parameters=model.parameters(), grad_clip=ClipGradByGlobalNorm(CLIP), **ADAM)
        step = EagerStep(model, optimizer, mesh, batch_placements(mesh), n_micro)

        def gradients():
            return {n: p.grad.numpy() for n, p in model.named_parameters() if p.grad is not None}
        return train(step, batches, optimizer, gradients)
    return simulate("dp=1", run, FLOAT64)[0]


def train(step: Any, batches: list, updates: Any, gradients: Any) -> Run:
    """A step per batch.   updates.step() is what updates the parameters; gradients() are those that it will use."""
    comm, everyone = current().comm, tuple(range(current().comm.size))
    losses, first, counts, update = [], [], {}, updates.step

    def noted() -> None:
        first.append(gradients() if not first else {})
        update()

    def shared(loss: Any) -> float:
        return float(comm.all_reduce(np.array(step.share(loss)), everyone))
    updates.step = noted
    for ids, labels in batches:
        before = dict(comm.counts)
        loss = step(ids, labels)
        counts = {k: n - before.get(k, 0) for k, n in comm.counts.items() if n != before.get(k, 0)}
        losses.append(shared(loss))
    evaluated = shared(step.evaluate(*batches[0]))
    return Run(losses, first[0], {n: p.numpy() for n, p in step.parameters().items()}, counts, evaluated,
               int(step.optimizer.scalars()[1]))


def assert_same(runs: list[Run], expected: Any, tolerance: float = 1e-10) -> None:
    """The stages together know every parameter and gradient of `expected`, to `tolerance` of its largest value."""
    for run in runs:
        np.testing.assert_allclose(run.losses, expected.losses, rtol=tolerance)
    for what in ("gradients", "parameters"):
        whole = getattr(expected, what)
        assert {name for run in runs for name in getattr(run, what)} == whole.keys()
        for run in runs:
            for name, value in getattr(run, what).items():
                np.testing.assert_allclose(value, whole[name], rtol=0, err_msg=f"{what} {name}",
                                           atol=tolerance * np.abs(whole[name]).max())
