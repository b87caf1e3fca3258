"""Optimizer steps of a small Llama on a mesh with pipeline stages, to be compared with plain numpy.

Five layers on the stages, sequences with uneven masks in micro-batches.  `way` is "eager", "static" (programs of
library kernels) or "cinn" (programs of fused kernels).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.framework.tensor import Tensor
from minipd.models.config import ModelConfig
from minipd.models.placements import batch_placements, copies_on_stages, parameter_placements, stage_of
from minipd.optimizer import AdamW
from minipd.parallel.pipeline.eager_stage import EagerStage
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.stage import Boundary, Stage
from minipd.parallel.pipeline.static_stage import StaticStage
from minipd.parallel.pipeline.tied import stages_clip
from tests.models.llamas import batch, filled
from tests.parity.runs import BETAS, CLIP, DECAY, EPSILON, RATE, parameters

FIVE = ModelConfig(vocab_size=29, dim=16, layers=5, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                   tie_embeddings=False)
SEQ = 8
Batches = list[tuple[np.ndarray, np.ndarray]]


class Run(NamedTuple):
    """What one rank knows of a run: of the parameters and gradients, those of its stage."""

    losses: list[float]
    gradients: dict[str, np.ndarray]        # of the first step, whole
    parameters: dict[str, np.ndarray]       # after the last
    replicated: dict[str, bytes]            # what the rank holds of each replicated parameter
    counts: dict[str, int]                  # messages and collectives of the last step
    evaluated: float                        # the loss of the last batch after the last step


def batches(config: ModelConfig, b: int = 6, steps: int = 3) -> Batches:
    """One global batch of b sequences per step, with a different number of counted labels in each sequence."""
    return [batch(config, b=b, s=SEQ, seed=20 + i, uneven=True) for i in range(steps)]


def pipeline(model: Any, mesh: ProcessMesh, way: str, b: int, n_micro: int, schedule: str = "1F1B") -> Pipeline:
    """The engine of this rank for a model that every rank has made."""
    config, n = model.config, mesh.get_dim_size("pp")
    part = ModelSlice(model, mesh, lambda name: stage_of(name, config.layers, n), parameter_placements,
                      copies=copies_on_stages(config.tie_embeddings, n))
    optimizer = AdamW(RATE, *BETAS, epsilon=EPSILON, parameters=list(part.parameters.values()), weight_decay=DECAY,
                      grad_clip=stages_clip(part, CLIP))
    placements, shape = batch_placements(part.mesh), (b // n_micro, SEQ)
    stage: Stage
    if way == "eager":
        hidden = Boundary("hidden", (*shape, config.dim), current().default_dtype, tuple(placements))
        stage = EagerStage(part, optimizer, placements, hidden)
    else:
        stage = StaticStage(part, optimizer, placements, parameter_placements, shape, cinn=way == "cinn")
    step = Pipeline(stage, model, optimizer, mesh, placements, n_micro, schedule)
    step.part = part
    return step


def first_gradients(step: Pipeline) -> dict[str, np.ndarray]:
    """Filled by the first call of the step with what its optimizer job finds, whole, and added up over copies."""
    found: dict[str, np.ndarray] = {}
    stage, update, together = step.stage, step.stage.step, stages_clip(step.part, 0.0)

    def noted() -> None:
        if not found:
            trained = {n: stage.parameters[n] for n in stage.gradients}
            pairs = [(p, ROWS["match"](Tensor(stage.gradients[n]), p)) for n, p in trained.items()]
            found.update({n: g.numpy() for n, (_, g) in zip(trained, together(pairs), strict=True)})
        update()
    stage.step = noted      # type: ignore[method-assign]
    return found


def pipeline_run(config: ModelConfig, mesh: ProcessMesh, way: str, data: Batches, n_micro: int,
                 schedule: str = "1F1B", model: Any = None) -> Run:
    """The steps on this rank.   model: one with the common parameters unless given."""
    model = filled(config, parameters(config)) if model is None else model
    step = pipeline(model, mesh, way, len(data[0][0]), n_micro, schedule)
    gradients, comm, losses, counted = first_gradients(step), current().comm, [], {}

    def whole(loss: Any) -> float:
        return float(comm.all_reduce(np.array(step.share(loss)), tuple(range(comm.size))))
    for ids, labels in data:
        before = dict(comm.counts)
        loss = step(ids, labels)
        counted = {k: n - before.get(k, 0) for k, n in comm.counts.items() if n != before.get(k, 0)}
        losses.append(whole(loss))
    named, evaluated = step.parameters(), whole(step.evaluate(*data[-1]))
    return Run(losses, gradients, {n: p.numpy() for n, p in named.items()},
               {n: p.payload.local.tobytes() for n, p in named.items()
                if not any(q.is_shard() for q in p.payload.placements)}, counted, evaluated)
