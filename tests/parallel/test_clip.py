"""Clipping over the stages of a pipeline (hard case E8)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.framework.tensor import Parameter, Tensor
from minipd.optimizer import SGD
from minipd.parallel.pipeline.clip import ClipGradByStagesNorm
from minipd.parallel.pipeline.tied import TiedGradients, stages_clip


def stages_of(mesh):
    """The sub-mesh of this rank's stage, and which stage it is."""
    stage = mesh.get_rank_by_dim_and_process_id("pp", current().rank)
    return mesh.get_mesh_with_dim("pp", stage), stage


def clipped(mesh):
    """Stage 0 has a replicated gradient [3] and one sharded over tp, [4, 0]; stage 1 has [12], sharded: norm 13."""
    own, stage = stages_of(mesh)
    grads = [([3.0], Replicate()), ([4.0, 0.0], Shard(0))] if stage == 0 else [([12.0, 0.0], Shard(0))]
    pairs = [(Parameter(np.zeros(len(g))), shard_tensor(g, own, [p])) for g, p in grads]
    found, finite = ClipGradByStagesNorm(6.5, mesh).checked(pairs)
    return [g.numpy().tolist() for _, g in found], bool(finite)


@pytest.mark.parametrize("mesh", ["pp=2,tp=2", "tp=2,pp=2"])
def test_the_norm_counts_every_parameter_once(mesh):
    """3-4-12 has norm 13; with the replicated 3 counted per rank of tp it would be 13.3, per stage 5 and 12."""
    log = []
    found = simulate(mesh, clipped, np.dtype("float64"), log)
    by_stage = [found[0], found[2 if mesh.startswith("pp") else 1]]
    assert by_stage == [([[1.5], [2.0, 0.0]], True), ([[6.0, 0.0]], True)]
    assert len([line for line in log if "all_reduce" in line]) == 4     # of tp on each stage, of pp twice


@pytest.mark.parametrize("clip", [2.5, None])
def test_copies_on_two_stages(clip):
    """A parameter on the first and the last of three stages has gradients 3 and 1 there, together 4; with the 3 of one
    on the middle stage the norm is 5."""
    def run(mesh):
        own, stage = stages_of(mesh)
        p = Parameter(np.zeros(1))
        p.name = "middle" if stage == 1 else "tied"
        norm = None if clip is None else ClipGradByStagesNorm(clip, mesh, copies=["tied"] if stage == 2 else [])
        grads = TiedGradients(mesh, {"tied": (0, 2)}, norm) if stage != 1 else norm
        g = shard_tensor([[3.0], [3.0], [1.0]][stage], own, [Replicate()])
        (_, g), = [(p, g)] if grads is None else grads([(p, g)])
        return g.tolist()
    log = []
    found = simulate("pp=3", run, np.dtype("float64"), log)
    assert found == ([[2.0], [1.5], [2.0]] if clip else [[4.0], [3.0], [4.0]])
    assert log[0].endswith("by (0, 2)") and len(log) == (2 if clip else 1)


def test_a_gradient_that_is_not_finite_on_one_stage_skips_the_step_on_all():
    def run(mesh):
        own, stage = stages_of(mesh)
        p = Parameter(np.array([1.0]))
        shard_tensor(p, own, [Replicate()])
        p.grad = shard_tensor(Tensor(np.array([np.nan if stage else 3.0])), own, [Replicate()])
        optimizer = SGD(0.5, parameters=[p], grad_clip=ClipGradByStagesNorm(1.0, mesh))
        optimizer.step()
        return p.numpy().tolist(), int(optimizer.scalars()[1])
    assert simulate("pp=2", run, np.dtype("float64")) == [([1.0], 0)] * 2


@pytest.mark.parametrize("clip", [0.0, 10.0])
def test_a_stage_that_has_nothing_to_train_counts_the_step_too(clip):
    """Otherwise a checkpoint would have a count per stage, and other stages would go on from the wrong one."""
    def run(mesh):
        own, stage = stages_of(mesh)
        p = Parameter(np.array([1.0]))
        shard_tensor(p, own, [Replicate()])
        if stage:
            p.grad = shard_tensor(Tensor(np.array([3.0])), own, [Replicate()])
        part = SimpleNamespace(parameters={"p": p}, copies={}, whole=mesh, index=stage)
        optimizer = SGD(0.5, parameters=[p], grad_clip=stages_clip(part, clip))
        optimizer.step()
        return p.numpy().tolist(), int(optimizer.scalars()[1])
    assert simulate("pp=2", run, np.dtype("float64")) == [([1.0], 1), ([-0.5], 1)]
