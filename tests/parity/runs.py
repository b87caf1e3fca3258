"""Five optimizer steps of a small Llama: in plain numpy, and on a mesh eagerly, as a program, and compiled.

`way` is "eager", "static" (a program of library kernels) or "cinn" (a program of fused kernels).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minipd.dist.mesh import ProcessMesh
from minipd.dist.static.rank_program import RankProgram
from minipd.framework.context import using
from minipd.framework.rank import current
from minipd.framework.row import ROWS
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.ir.verify import verify
from minipd.models.config import ModelConfig
from minipd.models.placements import batch_placements, parameter_placements
from minipd.nn.clip import ClipGradByGlobalNorm
from minipd.optimizer import AdamW
from minipd.parallel.program import read_state, write_gradients
from minipd.parallel.static_step import StaticStep
from minipd.parallel.step import EagerStep, Step, shard_model
from tests.models.llamas import batch, filled, oracle_config
from tests.oracles import llama_numpy as oracle

STEPS, RATE, DECAY, EPSILON, CLIP = 5, 3e-3, 0.1, 1e-5, 0.5
BETAS = 0.9, 0.95


class Run(NamedTuple):
    """What a run is compared by.  shards: what this rank holds of each replicated parameter, for bit equality."""

    losses: list[float]
    gradients: dict[str, np.ndarray]        # of the first step
    parameters: dict[str, np.ndarray]       # after the last
    collectives: dict[str, int]             # of the last step
    replicated: dict[str, bytes]


def data(config: ModelConfig) -> list[tuple[np.ndarray, np.ndarray]]:
    """One global batch per step, with a different number of counted labels in each sequence."""
    return [batch(config, b=4, s=8, seed=10 + i, uneven=True) for i in range(STEPS)]


def parameters(config: ModelConfig) -> dict[str, np.ndarray]:
    return oracle.random_parameters(oracle_config(config), seed=3)


def numpy_run(config: ModelConfig, batches: list[tuple[np.ndarray, np.ndarray]] | None = None) -> Run:
    """The reference: nothing of minipd in it.   batches: (ids, labels) per step, those of `data` unless given."""
    c, params = oracle_config(config), parameters(config)
    m = {n: np.zeros_like(p) for n, p in params.items()}
    v = {n: np.zeros_like(p) for n, p in params.items()}
    losses, first = [], {}
    for i, (ids, labels) in enumerate(data(config) if batches is None else batches):
        loss, grads = oracle.loss_and_grads(params, ids, labels, c)
        losses.append(loss)
        first = first or grads
        clipped, _ = oracle.clip_reference(grads, CLIP)
        for n in params:
            params[n], m[n], v[n] = oracle.adamw_reference(
                params[n], clipped[n], m[n], v[n], i + 1, RATE, *BETAS, eps=EPSILON, weight_decay=DECAY)
    return Run(losses, first, params, {}, {})


def mesh_run(config: ModelConfig, mesh: ProcessMesh, way: str, n_micro: int) -> Run:
    """The same on this rank of a mesh."""
    model, step = prepared(config, mesh, way, n_micro)
    gradients = first_gradients(config, mesh, way, n_micro)
    comm, losses, before = current().comm, [], {}
    for ids, labels in data(config):
        before = dict(comm.counts)
        parts = step(ids, labels)
        counted = {k: n - before.get(k, 0) for k, n in comm.counts.items() if n != before.get(k, 0)}
        losses.append(float(comm.all_reduce(np.array(step.share(parts)), tuple(range(comm.size)))))
    named = dict(model.named_parameters())
    return Run(losses, gradients, {n: p.numpy() for n, p in named.items()}, counted,
               {n: p.payload.local.tobytes() for n, p in named.items()
                if not any(q.is_shard() for q in p.payload.placements)})


def prepared(config: ModelConfig, mesh: ProcessMesh, way: str, n_micro: int) -> tuple[Any, Step]:
    """A model with the common parameters, and its step."""
    model = filled(config, parameters(config))
    shard_model(model, mesh, parameter_placements)
    optimizer = AdamW(RATE, *BETAS, epsilon=EPSILON, parameters=model.parameters(), weight_decay=DECAY,
                      grad_clip=ClipGradByGlobalNorm(CLIP))
    placements = batch_placements(mesh)
    if way != "eager":
        return model, StaticStep(model, optimizer, mesh, placements, (4, 8), n_micro, cinn=way == "cinn")
    return model, EagerStep(model, optimizer, mesh, placements, n_micro)


def first_gradients(config: ModelConfig, mesh: ProcessMesh, way: str, n_micro: int) -> dict[str, np.ndarray]:
    """The gradient of every parameter in the first step, whole."""
    model, step = prepared(config, mesh, "eager", n_micro)
    named, (ids, labels) = dict(model.named_parameters()), data(config)[0]
    if way == "eager":
        n_tokens = step.count(labels)
        for i, y in step.parts(ids, labels):
            from minipd.dist.api import shard_tensor
            shards = [shard_tensor(a, mesh, batch_placements(mesh)) for a in (i, y)]
            model.loss(*shards, shard_tensor(n_tokens, mesh, step_replicated(mesh))).backward()
        return {n: ROWS["match"](p.grad, p).numpy() for n, p in named.items()}
    program = Program()
    trace = Trace(program)
    with using(ground=trace, middle=None, grad=False), program.constraints.collect():
        values = read_state(trace, named)
        _, gradients = write_gradients(trace, model, values, (4, 8), n_micro)
        for n, g in gradients.items():
            trace.build.output(n, g.payload)
    split = {"ids": batch_placements(mesh), "labels": batch_placements(mesh)}
    ranked = RankProgram(program, trace, mesh, named, split, cinn=way == "cinn")
    verify(ranked.whole)
    verify(ranked.local)
    verify(ranked.compiled)
    feed = {"n_tokens": step.count(labels)}
    for m, (i, y) in enumerate(step.parts(ids, labels)):
        feed[f"ids_{m}"], feed[f"labels_{m}"] = i, y
    return {n: g.materialize("the test") for n, g in ranked(feed).items()}


def step_replicated(mesh: ProcessMesh) -> list:
    from minipd.dist.placements import Replicate
    return [Replicate()] * mesh.ndim
