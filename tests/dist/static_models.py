"""Small models, each with a way to place it, trained eagerly and as programs on simulated ranks."""

from __future__ import annotations

import numpy as np

import minipd as paddle
from minipd.dist.api import reshard, shard_layer, shard_tensor
from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Replicate, Shard
from minipd.dist.simulate import simulate
from minipd.dist.static.dist_model import DistModel
from minipd.nn import Layer, Linear, MSELoss
from minipd.nn import functional as F

R, S0, S1 = Replicate(), Shard(0), Shard(1)
F64 = np.dtype("float64")
RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(8, 6)), RNG.normal(size=(8, 4))


class Mlp(Layer):
    """Two weights; between them, what `middle` does to the activation."""

    def __init__(self, middle=None, end=None, hidden=8, bias=True):
        super().__init__()
        self.first = Linear(6, hidden, bias_attr=None if bias else False)
        self.second = Linear(hidden, 4, bias_attr=None if bias else False)
        self.middle, self.end = middle, end

    def forward(self, x):
        h = F.gelu(self.first(x))
        if self.middle is not None:
            h = self.middle(h)
        h = self.second(h)
        return h if self.end is None else self.end(h)


def place_all(layer, mesh, placements):
    """Parameters by their names; the others are replicated."""
    for name, p in layer.named_parameters():
        shard_tensor(p, mesh, placements.get(name, [R] * mesh.ndim))


class Setting:
    """mesh: of all ranks.  build(mesh) -> a layer, placed.  given(mesh, array, what) -> a batch, placed."""

    def __init__(self, mesh, build, given):
        self.mesh, self.build, self.given = mesh, build, given


def data_parallel():
    def build(mesh):
        layer = Mlp()
        place_all(layer, mesh, {})
        return layer
    return Setting("dp=2", build, lambda mesh, a, what: shard_tensor(a, mesh, [S0]))


def unplaced():
    """Nothing but the batch says that there is a mesh."""
    return Setting("dp=2", lambda mesh: Mlp(), lambda mesh, a, what: shard_tensor(a, mesh, [S0]))


MEGATRON = {"first.weight": [S1], "first.bias": [S0], "second.weight": [S0]}


def megatron(axes, **sizes):
    """The first product split by columns, the second by rows."""
    def build(mesh):
        layer = Mlp(**sizes)
        place_all(layer, mesh, MEGATRON)
        return layer
    return Setting(axes, build, lambda mesh, a, what: shard_tensor(a, mesh, [R]))


def tensor_parallel():
    return megatron("tp=2")


def uneven():
    """7 hidden features over 4 ranks: 2, 2, 2, 1."""
    return megatron("tp=4", hidden=7)


def empty():
    """3 hidden features over 4 ranks: the last one has none."""
    return megatron("tp=4", hidden=3)


def both():
    def build(mesh):
        layer = Mlp()
        place_all(layer, mesh, {name: [R, *p] for name, p in MEGATRON.items()})
        return layer
    return Setting("dp=2,tp=2", build, lambda mesh, a, what: shard_tensor(a, mesh, [S0, R]))


def by_shard_layer():
    """What users write: a function of the sublayer."""
    def build(mesh):
        def place(name, sub, mesh):
            if name == "first":
                sub.weight = shard_tensor(sub.weight, mesh, [R, S1])
                sub.bias = shard_tensor(sub.bias, mesh, [R, S0])
            if name == "second":
                sub.weight = shard_tensor(sub.weight, mesh, [R, S0])
        return shard_layer(Mlp(), mesh, place)
    return Setting("dp=2,tp=2", build, lambda mesh, a, what: shard_tensor(a, mesh, [S0, R]))


def sequence_parallel():
    """Between the layers activations are split along the batch over tp: all_gather before, reduce_scatter behind."""
    def build(mesh):
        layer = Mlp(end=lambda h: reshard(h, mesh, [S0]))
        place_all(layer, mesh, MEGATRON)
        layer.register_forward_pre_hook(lambda _, inputs: reshard(inputs[0], mesh, [R]))
        return layer
    return Setting("tp=2", build, lambda mesh, a, what: shard_tensor(a, mesh, [S0]))


def stages(mesh):
    half = mesh.size // 2
    ids = mesh.process_ids
    return ProcessMesh(ids[:half], ["x"]), ProcessMesh(ids[half:], ["x"])


def pipeline(ranks, placements):
    """The first layer on the first half of the ranks, the second on the others."""
    def build(mesh):
        first, second = stages(mesh)
        layer = Mlp(middle=lambda h: reshard(h, second, placements))
        place_all(layer.first, first, {})
        place_all(layer.second, second, {})
        return layer

    def given(mesh, a, what):
        first, second = stages(mesh)
        return shard_tensor(a, first if what == "input" else second, placements)
    return Setting(f"x={ranks}", build, given)


def mixed(mesh_text="pp=2,dp=2,tp=2"):
    """Stages, batches and features at once: 8 ranks."""
    def build(mesh):
        first, second = mesh[0], mesh[1]
        layer = Mlp(middle=lambda h: reshard(h, second, [S0, R]), bias=False)
        place_all(layer.first, first, {"weight": [R, S1]})
        place_all(layer.second, second, {"weight": [R, S0]})
        return layer
    return Setting(mesh_text, build, lambda mesh, a, what: shard_tensor(a, mesh[0 if what == "input" else 1], [S0, R]))


SETTINGS = {"dp": data_parallel, "unplaced": unplaced, "tp": tensor_parallel, "uneven": uneven, "empty": empty,
            "dp x tp": both, "shard_layer": by_shard_layer, "sequence": sequence_parallel,
            "pp 2": lambda: pipeline(2, [R]), "pp 4": lambda: pipeline(4, [S0]), "pp x dp x tp": mixed}


def sgd(layer):
    return paddle.optimizer.SGD(0.1, parameters=layer.parameters())


def adamw(layer):
    return paddle.optimizer.AdamW(0.05, parameters=layer.parameters(), epsilon=1e-5)


class Run:
    """losses, predictions: one per step, from any rank that has them.  state: parameters at the end.  log: what the
    ranks said to each other in each of the steps."""

    def __init__(self, setting, way, make_optimizer=sgd, steps=3, predict=True):
        self.log = []

        def on_rank(mesh):
            paddle.seed(3)
            layer = setting.build(mesh)
            optimizer = make_optimizer(layer)
            x, y = setting.given(mesh, X, "input"), setting.given(mesh, Y, "label")
            step = Eager(layer, optimizer) if way == "eager" else DistModel(layer, None, MSELoss(), optimizer)
            step.train()
            losses = [step(x, y) for _ in range(steps)]
            step.eval()
            losses.append(step(x, y))
            predicted = None
            if predict:
                step.predict()
                predicted = step(x)[0]
            return losses, predicted, {name: whole(p) for name, p in layer.named_parameters()}
        found = simulate(setting.mesh, on_rank, dtype=F64, log=self.log)
        self.losses = next(losses for losses, _, _ in found if losses[0] is not None)
        for losses, _, _ in found:
            assert losses[0] is None or [float(x) for x in losses] == [float(x) for x in self.losses]
        self.predicted = next((p for _, p, _ in found if p is not None), None)
        self.state = {name: next(s[name] for _, _, s in found if s[name] is not None) for name in found[0][2]}


def whole(t):
    """The global values; None on a rank that has no part of them."""
    try:
        return t.numpy()
    except TypeError:
        return None


class Eager:
    """A DistModel's calls, operator by operator."""

    def __init__(self, layer, optimizer, loss=None):
        self.layer, self.optimizer, self.loss, self.mode = layer, optimizer, loss or MSELoss(), "train"

    def train(self):
        self.mode = "train"

    def eval(self):
        self.mode = "eval"

    def predict(self):
        self.mode = "predict"

    def __call__(self, x, y=None):
        if self.mode == "predict":
            with paddle.no_grad():
                return [whole(self.layer(x))]
        if self.mode == "eval":
            with paddle.no_grad():
                return whole(self.loss(self.layer(x), y))
        loss = self.loss(self.layer(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return whole(loss)


def alone(make_optimizer=sgd, steps=3, hidden=8, bias=True):
    """The same on one rank: (losses, predictions, state)."""
    found = []

    def run(mesh):
        paddle.seed(3)
        layer = Mlp(hidden=hidden, bias=bias)
        step = Eager(layer, make_optimizer(layer))
        x, y = paddle.to_tensor(X), paddle.to_tensor(Y)
        losses = [step(x, y) for _ in range(steps)]
        step.mode = "eval"
        losses.append(step(x, y))
        step.mode = "predict"
        found.append((losses, step(x)[0], {n: p.numpy() for n, p in layer.named_parameters()}))
    simulate("x=1", run, dtype=F64)
    return found[0]
