"""Random small models, laid out at random: trained as programs, the ranks say to each other what they say eagerly, in
the same order, and get the same losses and parameters."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate
from minipd.dist.placements import whole as whole_placements
from minipd.dist.simulate import simulate
from minipd.dist.static.dist_model import DistModel
from minipd.framework.rank import current
from minipd.nn import Layer
from tests.dist.random_models import optimizer, random_layout, random_model
from tests.dist.static_models import Eager, whole

COUNT, ALL = 12, 200


class Laid(Layer):
    """A random model as a layer: everything up to the loss."""

    def __init__(self, model, layout):
        super().__init__()
        self.model, self.layout, self.held = model, layout, {}
        stage = {n: s for s, each in zip(layout.stages, (*model.layers, model.loss), strict=True)
                 for n in each.parameters}
        for i, (n, v) in enumerate(model.parameters.items()):
            p = self.create_parameter(v.shape, dtype="float64",
                                      default_initializer=paddle.nn.initializer.Assign(v))
            setattr(self, f"p{i}", p)
            self.held[n] = shard_tensor(p, layout.stage(stage[n]), layout.parameters[n])

    def forward(self, x):
        for i, each in enumerate(self.model.layers):
            x = each.run(x, self.held)
            if i in self.layout.moves:
                x = paddle.distributed.reshard(x, self.layout.stage(self.layout.stages[i + 1]), self.layout.moves[i])
        return x

    def loss(self, out, label):
        return self.model.loss.run(out, self.held)


def run(model, layout, way, log):
    def on_rank(mesh):
        paddle.seed(7)
        laid = Laid(model, layout)
        update = optimizer(model, laid.parameters())
        x = shard_tensor(paddle.to_tensor(model.data), layout.stage(0), layout.data)
        last = layout.stage(layout.stages[-1])
        label = shard_tensor(paddle.to_tensor([0.0]), last, [Replicate()] * last.ndim)
        if way == "static":
            step = DistModel(laid, None, laid.loss, update)
        else:
            step = Eager(laid, update, laid.loss)
        losses = [step(x, label) for _ in range(2)]
        here = [p for p in laid.parameters() if p.payload.mesh.contains(current().rank)]
        return losses, [whole(p) for p in here]
    return simulate(layout.mesh, on_rank, dtype=np.dtype("float64"), log=log)


def check(seed):
    model = random_model(seed)
    layout = random_layout(model, seed)
    layout = layout._replace(data=whole_placements(layout.data))        # eagerly, a Partial is resolved once for all
    trained = {s for s, each in zip(layout.stages, (*model.layers, model.loss), strict=True) if each.parameters}
    if model.update == "clipped" and len(trained) <= max(layout.stages):
        model = model._replace(update="SGD")    # a stage without parameters does not learn whether a step is skipped
    logs = [], []
    try:
        eager, static = (run(model, layout, way, log) for way, log in zip(("eager", "static"), logs, strict=True))
        assert logs[0] == logs[1], first_difference(*logs)
        for (wanted, state), (got, new) in zip(eager, static, strict=True):
            assert [x is None for x in wanted] == [x is None for x in got]
            for a, b in zip([x for x in wanted if x is not None] + state, [x for x in got if x is not None] + new,
                            strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
    except Exception as error:
        error.add_note(f"model {seed}: {model}\n{layout}")
        raise


def first_difference(eager, static):
    """Where two logs part."""
    at = next((i for i, (a, b) in enumerate(zip(eager, static, strict=False)) if a != b), min(len(eager), len(static)))
    return f"from entry {at} on, eager ranks say {eager[at:at + 3]}, programs {static[at:at + 3]}"


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_program_on_a_mesh(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(COUNT, ALL, 20))
def test_many_programs(first):
    for seed in range(first, first + 20):
        check(seed)
