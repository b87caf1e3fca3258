"""Optimizer steps of a small Llama on a mesh with pipeline stages, to be compared with plain numpy.

Five layers on the stages, six sequences with uneven masks in micro-batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.models.config import ModelConfig
from minipd.models.placements import batch_placements, parameter_placements, stage_of
from minipd.optimizer import AdamW
from minipd.parallel.pipeline.clip import ClipGradByStagesNorm
from minipd.parallel.pipeline.eager_stage import EagerStage
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.stage import Boundary
from tests.models.llamas import batch, filled
from tests.parity.runs import BETAS, CLIP, DECAY, EPSILON, RATE, parameters

FIVE = ModelConfig(vocab_size=29, dim=16, layers=5, heads=4, kv_heads=2, ffn_dim=24, max_seq=8, norm_eps=1e-6,
                   tie_embeddings=False)
BATCH, SEQ, STEPS = 6, 8, 3


class Run(NamedTuple):
    """What one rank knows of a run: of the parameters and gradients, those of its stage."""

    losses: list[float]
    gradients: dict[str, np.ndarray]        # of the first step, whole
    parameters: dict[str, np.ndarray]       # after the last
    replicated: dict[str, bytes]
    counts: dict[str, int]                  # messages and collectives of the last step
    timeline: list[dict[str, Any]]          # of the last step


def data(config: ModelConfig, steps: int = STEPS) -> list[tuple[np.ndarray, np.ndarray]]:
    return [batch(config, b=BATCH, s=SEQ, seed=20 + i, uneven=True) for i in range(steps)]


def pipeline(config: ModelConfig, mesh: ProcessMesh, n_micro: int, schedule: str = "1F1B",
             model: Any = None) -> Pipeline:
    """The engine with an eager stage, for a model with the common parameters."""
    n = mesh.get_dim_size("pp")
    part = ModelSlice(model or filled(config, parameters(config)), mesh, lambda name: stage_of(name, config.layers, n),
                      parameter_placements)
    optimizer = AdamW(RATE, *BETAS, epsilon=EPSILON, parameters=list(part.parameters.values()), weight_decay=DECAY,
                      grad_clip=ClipGradByStagesNorm(CLIP, mesh))
    placements = batch_placements(part.mesh)
    boundary = Boundary("hidden", (BATCH // n_micro, SEQ, config.dim), current().default_dtype, tuple(placements))
    stage = EagerStage(part, optimizer, placements, boundary)
    return Pipeline(stage, part.model, optimizer, mesh, placements, n_micro, schedule)


def first_gradients(step: Pipeline) -> dict[str, np.ndarray]:
    """Filled by the first call of the step: what its optimizer job finds."""
    found: dict[str, np.ndarray] = {}
    update = step.stage.step

    def noted() -> None:
        if not found:
            found.update({n: ROWS["match"](p.grad, p).numpy() for n, p in step.stage.parameters.items()})
        update()
    step.stage.step = noted
    return found


def pipeline_run(config: ModelConfig, mesh: ProcessMesh, n_micro: int, schedule: str = "1F1B") -> Run:
    step = pipeline(config, mesh, n_micro, schedule)
    gradients = first_gradients(step)
    comm, losses, before = current().comm, [], {}
    for ids, labels in data(config):
        before = dict(comm.counts)
        loss = step(ids, labels)
        counted = {k: n - before.get(k, 0) for k, n in comm.counts.items() if n != before.get(k, 0)}
        losses.append(float(comm.all_reduce(np.array(step.share(loss)), tuple(range(comm.size)))))
    named = step.parameters()
    return Run(losses, gradients, {n: p.numpy() for n, p in named.items()},
               {n: p.payload.local.tobytes() for n, p in named.items()
                if not any(q.is_shard() for q in p.payload.placements)}, counted, step.timeline)
