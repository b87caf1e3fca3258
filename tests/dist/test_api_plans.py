"""parallelize and its plans: the losses of one rank."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd import nn
from minipd.dist.placements import Partial, Replicate, Shard
from minipd.framework.rank import current
from minipd.io import DataLoader, TensorDataset
from minipd.nn import functional as F
from tests.dist.ranks import on_mesh
from tests.dist.refused import refused

R, P, S0, S1 = Replicate(), Partial(), Shard(0), Shard(1)


# ---------------------------------------------------------------------------------------------------------------- plans
class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 12), nn.Linear(12, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8, padding_idx=2)
        self.layers = nn.LayerList([Block() for _ in range(2)])
        self.head = nn.Linear(8, 11)
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x) * self.scale


TENSOR = {"embed": dist.RowWiseParallel(), "layers.*.up": dist.ColWiseParallel(),
          "layers.*.down": dist.RowWiseParallel(), "head.weight": dist.ColWiseParallel(),
          "head.bias": dist.ColWiseParallel()}
SEQUENCE = {**TENSOR, "embed": [dist.RowWiseParallel(), dist.SequenceParallelBegin()],
            "head": [dist.ColWiseParallel(gather_output=True), dist.SequenceParallelEnd()]}
IDS = np.random.default_rng(3).integers(0, 11, (4, 6))


def train(mesh, plan, dp=None, ids=IDS):
    paddle.seed(4)
    model = Model()
    sgd = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    if mesh is not None:
        config = {"mp_config": {"parallelize_plan": plan}} | ({} if dp is None else {"dp_config": dp})
        model, sgd = dist.parallelize(model, sgd, mesh, config)
    losses = []
    for _ in range(3):
        x = paddle.to_tensor(ids)
        y = (x * 3 + 1) % 11
        if mesh is not None and "dp" in mesh.dim_names:
            x, y = (dist.shard_tensor(t, mesh, [S0] + [R] * (mesh.ndim - 1)) for t in (x, y))
        loss = F.cross_entropy(model(x), y.unsqueeze(-1))
        loss.backward()
        sgd.step()
        sgd.clear_grad()
        losses.append(loss.item())
    return losses, {name: p.placements for name, p in model.named_parameters()}, current().mesh


@pytest.mark.parametrize(("grid", "plan", "dp"), [
    ("mp=2", TENSOR, None), ("mp=3", TENSOR, None), ("dp=2,mp=2", TENSOR, {"sharding_level": 0}),
    ("mp=2", SEQUENCE, None), ("dp=2,mp=2", SEQUENCE, {}), ("dp=2", {}, {"sharding_level": 0}),
], ids=lambda x: x if isinstance(x, str) else "")
def test_parallelize(grid, plan, dp):
    """The losses of one rank: a vocabulary-parallel embedding with padding, uneven (11 over 2 and 3), columns, rows."""
    alone = train(None, plan)[0]

    def run(mesh):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if not plan:
                return train_without_plan(mesh, dp)
            return train(mesh, plan, dp)
    for losses, placed, mesh in on_mesh(grid, run):
        np.testing.assert_allclose(losses, alone, rtol=2e-5)
        mp = None if "mp" not in grid else grid.count(",")
        if mp is not None:
            assert [placed[name][mp] for name in ("embed.weight", "layers.0.up.weight", "layers.1.up.bias",
                                                  "layers.1.down.weight", "layers.1.down.bias", "head.weight",
                                                  "scale", "layers.0.norm.weight")] == [S0, S1, S0, S0, R, S1, R, R]
        assert mesh is not None


def train_without_plan(mesh, dp):
    paddle.seed(4)
    model = Model()
    adamw = paddle.optimizer.AdamW(0.05, parameters=model.parameters())
    model, adamw = dist.parallelize(model, adamw, mesh, {"dp_config": dp})
    losses = []
    for _ in range(3):
        x = dist.shard_tensor(IDS, mesh, [S0])
        loss = F.cross_entropy(model(x), ((x * 3 + 1) % 11).unsqueeze(-1))
        loss.backward()
        adamw.step()
        adamw.clear_grad()
        losses.append(loss.item())
    return losses, {}, current().mesh


def test_sequence_plans_around_a_layer():
    """Enable and disable: what the layer sees, and what comes out."""
    seen = []

    class Look(nn.Layer):
        def forward(self, x):
            seen.append((list(x.shape), x.placements))
            return x * 2.0

    def run(mesh, plan):
        model = nn.Sequential(Look())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dist.parallelize(model, None, mesh, {"mp_config": {"parallelize_plan": {"0": plan}}})
        x0 = np.arange(24.0).reshape(4, 3, 2)
        out = model(dist.shard_tensor(x0, mesh, [R]))
        return list(out.shape), out.placements, (np.sort(out.numpy().ravel()) == np.arange(24.0) * 2).all()
    for plan, inside, outside in [
        (dist.SequenceParallelEnable(), ([3, 4, 2], [S0]), ([4, 3, 2], [R], True)),
        (dist.SequenceParallelDisable(), ([3, 4, 2], [R]), ([4, 3, 2], [S0], True)),
        (dist.SequenceParallelDisable(need_transpose=False), ([4, 3, 2], [R]), ([4, 3, 2], [S0], True)),
        (dist.PrepareLayerInput(lambda process_mesh: lambda _, inputs: dist.reshard(inputs[0], process_mesh, [S1])),
         ([4, 3, 2], [S1]), ([4, 3, 2], [S1], True)),
        (dist.PrepareLayerOutput(lambda process_mesh: lambda _, inputs, out: dist.reshard(out, process_mesh, [S1])),
         ([4, 3, 2], [R]), ([4, 3, 2], [S1], True)),
    ]:
        seen.clear()
        assert on_mesh("mp=2", lambda m, p=plan: run(m, p)) == [outside] * 2
        assert seen == [inside] * 2


def test_rows_of_a_whole_input():
    def run(mesh):
        paddle.seed(1)
        layer = nn.Sequential(nn.Linear(6, 3))
        x = paddle.to_tensor(np.arange(12.0).reshape(2, 6).astype("float32"))
        plain = layer(x).numpy()
        dist.parallelize(layer, None, mesh, {"mp_config": {"parallelize_plan": {
            "0": dist.RowWiseParallel(is_input_parallel=False)}}})
        y = layer(dist.shard_tensor(x, mesh, [R]))
        return np.abs(y.numpy() - plain).max(), current().comm.counts["all_gather"]
    assert all(error < 1e-5 and gathers == 0 for error, gathers in on_mesh("mp=2", run))


def test_width_of_a_convolution():
    def run(mesh):
        paddle.seed(1)
        net = nn.Sequential(nn.Conv2D(2, 3, 3, padding=1), nn.Conv2D(3, 2, 2, stride=2))
        x = paddle.to_tensor(np.random.default_rng(0).normal(size=(1, 2, 4, 8)).astype("float32"))
        plain = net(x).numpy()
        dist.parallelize(net, None, mesh, {"mp_config": {"parallelize_plan": {"0": dist.ConvParallel(),
                                                                              "1": dist.ConvParallel()}}})
        return np.abs(net(dist.shard_tensor(x, mesh, [R])).numpy() - plain).max()
    assert max(on_mesh("mp=2", run)) < 1e-5


def test_a_shared_parameter_has_one_placement():
    def run(mesh):
        model = nn.Sequential(nn.Embedding(6, 4), nn.Linear(4, 6))
        model.tied = nn.Embedding(6, 4)
        model.tied.weight = model[0].weight
        dist.parallelize(model, None, mesh, {"mp_config": {"parallelize_plan": {
            "0": dist.RowWiseParallel(), "tied": dist.ColWiseParallel()}}})
        return model.tied.weight is model[0].weight, model.tied.weight.placements
    assert on_mesh("mp=2", run) == [(True, [S0])] * 2


@pytest.mark.parametrize(("config", "text"), [
    ({"mp_config": {"parallelize_plan": {"up": 3}}}, "TypeError: parallelize: expected names of layers with plans "
                                                     "such as ColWiseParallel(), got 'up': 3"),
    ({"mp": {}}, "ValueError: parallelize: expected a config with some of mp_config, dp_config, pp_config, cp_config, "
                 "got mp"),
    ({"dp_config": {"sharding_level": 2}}, "NotImplementedError: parallelize: expected sharding_level 0, got 2"),
    ({"dp_config": {"sharding_level": 7}}, "ValueError: parallelize: expected sharding_level 0 to 3, got 7"),
    ({"dp_config": {}}, "ValueError: parallelize: expected a mesh with an axis 'dp' for dp_config, got mp=2"),
    ({"pp_config": {"split_spec": "layers"}}, "NotImplementedError: parallelize: expected mp_config and dp_config, got "
                                              "pp_config={'split_spec': 'layers'}"),
    ({"cp_config": {}}, "NotImplementedError: parallelize: expected mp_config and dp_config, got cp_config"),
    ({"mp_config": 3}, "TypeError: parallelize: expected mp_config to be a dict, got 3"),
    ({"mp_config": {"parallelize_plan": {"up": dist.ContextParallel()}}}, "NotImplementedError: ContextParallel: "),
    ({"mp_config": {"parallelize_plan": {"(": dist.ColWiseParallel()}}}, "ValueError: parallelize: expected the name "
                                                                         "of a layer, or a regular expression, got '("),
    (3, "TypeError: parallelize: expected config to be a dict"),
])
def test_refused_plans(config, text):
    assert refused(lambda m: dist.parallelize(Block(), None, m, config), "mp=2").startswith(text)


def test_a_plan_that_meets_no_layer():
    def run(mesh):
        with pytest.warns(UserWarning, match="no layer of the model is called 'nowhere'"):
            dist.parallelize(Block(), None, mesh, {"mp_config": {"parallelize_plan": {
                "nowhere": dist.ColWiseParallel()}}})
        with pytest.warns(UserWarning, match="got no config"):
            assert dist.parallelize(1, 2) == (1, 2)
    on_mesh("mp=2", run)


def test_to_distributed():
    """Data parallel: the losses of one rank."""
    x = np.random.default_rng(1).normal(size=(7, 8)).astype("float32")

    def run(mesh):
        paddle.seed(3)
        model = Block()
        adamw = paddle.optimizer.AdamW(0.1, parameters=model.parameters())
        loader = DataLoader(TensorDataset([x]), batch_size=4)
        if mesh is not None:
            model, adamw, loader = dist.to_distributed(model, adamw, loader, device_num=2)
        losses = []
        for batch, in loader:
            loss = (model(batch) ** 2).mean()
            loss.backward()
            adamw.step()
            adamw.clear_grad()
            losses.append(loss.item())
        return losses
    alone = run(None)
    for losses in on_mesh("dp=2", run):
        np.testing.assert_allclose(losses, alone, rtol=1e-5)
    config = dist.auto_parallel.high_level_api.ToDistributedConfig()
    config.sequence_parallel = True
    for how, text in [({"config": config}, "NotImplementedError: to_distributed: expected data parallelism, got a"),
                      ({"node_num": 0}, "ValueError: to_distributed: expected positive numbers, got device_num=2"),
                      ({"node_num": 3}, "ValueError: shard_dataloader: expected a mesh of the ranks 0 to 1")]:
        assert refused(lambda m, h=how: dist.to_distributed(Block(), None, DataLoader(TensorDataset([x])), 2, **h)
                       ).startswith(text)
