"""The engine of a pipeline, with a stage that only counts: who does what when, and what crosses."""

from __future__ import annotations

import numpy as np
import pytest

from minipd.dist.api import shard_tensor
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.optimizer import SGD
from minipd.parallel.pipeline.engine import Pipeline
from minipd.parallel.pipeline.model_slice import stage_meshes
from minipd.parallel.pipeline.stage import Boundary

FLOAT64 = np.dtype("float64")
IDS = np.arange(12).reshape(6, 2)


class Times:
    """A stage that multiplies by its number + 2.  The first begins with the ids; the last adds everything up."""

    gradients: dict = {}
    parameters: dict = {}

    def __init__(self, mesh, index, stages, n_micro, leaves=None):
        self.mesh, self.index, self.stages, self.factor = mesh, index, stages, index + 2.0
        self.placements = [Shard(0)] + [Replicate()] * (mesh.ndim - 1)
        b = Boundary("x", (6 // n_micro, 2), FLOAT64, tuple(self.placements))
        self.inputs, self.outputs = (b,) if index else (), (b,) if index < stages - 1 else ()
        self.leaves = leaves or self.placements
        self.done: list[str] = []

    def forward(self, m, batch, received):
        self.done.append(f"F{m}")
        return self.evaluate(batch, received)

    def evaluate(self, batch, received):
        x = Tensor(received[0]) if received else shard_tensor(batch.ids.astype(float), self.mesh, self.placements)
        x = x * self.factor
        return ((x.sum() / Tensor(batch.n_tokens)).payload if not self.outputs else
                shard_tensor(x, self.mesh, self.leaves).payload,)

    def backward(self, m, received):
        self.done.append(f"B{m}")
        g = Tensor(received[0]) if received else shard_tensor(np.full((self.inputs[0].shape), float(m)), self.mesh,
                                                              self.placements)
        self.last_gradient = (g * self.factor).numpy()
        return ((g * self.factor).payload,) if self.inputs else ()

    def step(self):
        self.done.append("step")

    def programs(self):
        return {"some.pir": f"stage {self.index}"}


def engine(mesh, n_micro, name="1F1B", **options):
    meshes = stage_meshes(mesh)
    index = mesh.get_rank_by_dim_and_process_id("pp", current().rank)
    stage = Times(meshes[index], index, len(meshes), n_micro, **options)
    return Pipeline(stage, None, SGD(0.1, parameters=[Tensor(np.zeros(1))]), mesh, stage.placements, n_micro, name)


@pytest.mark.parametrize("mesh", ["pp=3", "dp=2,pp=3", "pp=3,dp=2"])
def test_values_go_through_all_stages_and_gradients_come_back(mesh):
    """2 * 3 * 4 = 24 times each id; the gradient of micro-batch m is m at the end, 24 m at the beginning."""
    def run(m):
        step = engine(m, n_micro=3)
        losses = [step.share(f(IDS, np.where(IDS == 5, -100, IDS))) for f in (step, step.evaluate)]
        return step.stage.index, losses, step.stage.done, step.stage.last_gradient, step.programs()
    found = simulate(mesh, run, FLOAT64)
    for way in range(2):
        assert sum(losses[way] for _, losses, *_ in found) == pytest.approx(24 * IDS.sum() / 11)
    for index, losses, done, gradient, programs in found:
        assert (losses == [0.0, 0.0]) == (index < 2)
        assert done == ["F0 F1 F2 B0 B1 B2 step", "F0 F1 B0 F2 B1 B2 step", "F0 B0 F1 B1 F2 B2 step"][index].split()
        assert (gradient == 2.0 * [24, 12, 4][index]).all()
        assert programs == {"some.pir": f"stage {index}"}


def test_the_timeline_tells_of_the_last_step():
    def run(m):
        step = engine(m, n_micro=2, name="FThenB")
        assert step.timeline == []
        step(IDS, IDS)
        first = step.began
        step(IDS, IDS)
        assert step.began > first
        return step.timeline
    for rank, events in enumerate(simulate("pp=2", run, FLOAT64)):
        assert [(e["type"], e["micro"]) for e in events] == [
            ("forward", 0), ("forward", 1), ("backward", 0), ("backward", 1), ("optimizer", 0)]
        assert all(list(e) == ["rank", "stage", "type", "micro", "start", "end"] for e in events)
        assert all(e["rank"] == e["stage"] == rank and 0 <= e["start"] <= e["end"] for e in events)


def test_random_draws_are_named_after_the_micro_batch():
    def run(m):
        step, seen = engine(m, n_micro=3), []
        forward = step.stage.forward
        step.stage.forward = lambda n, *rest: (seen.append((current().rng.step, current().rng.micro)),
                                               forward(n, *rest))[1]
        for _ in range(2):
            step(IDS, IDS)
        return seen
    first = simulate("pp=2", run, FLOAT64)[0]
    assert [micro for _, micro in first] == [0, 1, 2] * 2 and first[3][0] == first[0][0] + 1


@pytest.mark.parametrize(("leaves", "text"), [
    ([Replicate()], "stage 0: expected x to leave as f64[3_dp, 2], got f64[3, 2]; reshard it to the boundary's"),
    ([Partial()], "stage 0: expected x to leave as f64[3_dp, 2], got f64[3, 2]{P_dp}"),
])
def test_what_leaves_a_stage_must_be_placed_as_the_next_one_expects(leaves, text):
    with pytest.raises(ValueError) as caught:
        simulate("pp=2,dp=2", lambda m: engine(m, 2, leaves=leaves)(IDS, IDS), FLOAT64)
    assert text in str(caught.value)


def test_a_batch_that_micro_batches_cannot_share_is_refused():
    with pytest.raises(ValueError, match="expected a batch that 3 micro-batches can share, got 5 sequences"):
        simulate("pp=2", lambda m: engine(m, 3)(IDS[:5], IDS[:5]), FLOAT64)
