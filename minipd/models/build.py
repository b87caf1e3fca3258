"""From a configuration to what trains: model, optimizer, and the step that fits the mesh.

The model file knows nothing of parallelism, and `placements.py` says where each parameter lives: this file puts the two
together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.dist.mesh import ProcessMesh, parse_mesh
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter
from minipd.models.config import RunConfig
from minipd.models.llama import LlamaForCausalLM
from minipd.models.placements import batch_placements, copies_on_stages, parameter_placements, stage_of
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.nn.parameter import LazyGuard
from minipd.optimizer import AdamW
from minipd.optimizer.lr import CosineAnnealingDecay, LinearWarmup
from minipd.parallel.pipeline.eager_stage import EagerStage
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.pipeline.inference import StagedModel
from minipd.parallel.pipeline.model_slice import ModelSlice
from minipd.parallel.pipeline.stage import Boundary, Stage
from minipd.parallel.pipeline.static_stage import StaticStage
from minipd.parallel.pipeline.tied import stages_clip
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import EagerStep, Step, shard_model

__all__ = ["Built", "build"]


class Built(NamedTuple):
    """What a run trains with.

    model: the model, of which a rank may hold a part only.  whole: a function from ids to logits, for generation, which
    all ranks call together.  rate: the schedule of the learning rate, which the run advances.
    """

    model: LlamaForCausalLM
    whole: Any
    rate: Any
    optimizer: AdamW
    step: Step


def build(config: RunConfig) -> Built:
    """On every rank: the model is made lazily, and each rank fills what it holds; nothing is communicated."""
    mesh, rate = parse_mesh(config.dist.mesh), _rate(config)
    with LazyGuard():
        model = LlamaForCausalLM(config.model)
    if config.dist.axes.get("pp", 1) > 1:
        return _pipeline(config, model, mesh, rate)
    parameters = shard_model(model, mesh, parameter_placements)
    norm = config.train.clip_norm
    optimizer = _optimizer(config, rate, parameters, ClipGradByGlobalNorm(norm) if norm else None)
    t, placements = config.train, batch_placements(mesh)
    step: Step
    if config.dist.eager:
        step = EagerStep(model, optimizer, mesh, placements, t.micro_batches)
    else:
        step = StaticStep(model, optimizer, mesh, placements, (t.batch, config.data.seq_len), t.micro_batches,
                          cinn=config.dist.cinn)
    return Built(model, model, rate, optimizer, step)


def _pipeline(config: RunConfig, model: LlamaForCausalLM, mesh: ProcessMesh, rate: Any) -> Built:
    t, layers, stages = config.train, config.model.layers, config.dist.axes["pp"]
    part = ModelSlice(model, mesh, lambda name: stage_of(name, layers, stages), parameter_placements,
                      copies=copies_on_stages(config.model.tie_embeddings, stages))
    clip = stages_clip(part, t.clip_norm)
    optimizer = _optimizer(config, rate, part.parameters, clip)
    placements, shape = batch_placements(part.mesh), (t.batch // t.micro_batches, config.data.seq_len)
    stage: Stage
    if config.dist.eager:
        hidden = Boundary("hidden", (*shape, config.model.dim), current().default_dtype, tuple(placements))
        stage = EagerStage(part, optimizer, placements, hidden)
    else:
        stage = StaticStage(part, optimizer, placements, parameter_placements, shape, cinn=config.dist.cinn)
    step = Pipeline(stage, model, optimizer, mesh, placements, t.micro_batches, config.dist.schedule)
    return Built(model, StagedModel(part), rate, optimizer, step)


def _rate(config: RunConfig) -> Any:
    """A linear warm-up, then a cosine."""
    t, warmup = config.train, config.train.warmup_steps
    cosine = CosineAnnealingDecay(t.lr, T_max=max(t.steps - warmup, 1), eta_min=t.min_lr)
    if not warmup:
        return cosine
    return LinearWarmup(cosine, warmup_steps=warmup, start_lr=t.lr / (warmup + 1), end_lr=t.lr)


def _optimizer(config: RunConfig, rate: Any, parameters: dict[str, Parameter], clip: Any) -> AdamW:
    """AdamW without decay of the norms' weights."""
    t = config.train
    norms = {p.name for name, p in parameters.items() if name.endswith("norm.weight")}
    return AdamW(rate, beta1=t.beta1, beta2=t.beta2, epsilon=t.epsilon, weight_decay=t.weight_decay,
                 parameters=list(parameters.values()), grad_clip=clip,
                 apply_decay_param_fun=lambda name: name not in norms)
