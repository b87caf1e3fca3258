"""`dist.to_static`: programs of many ranks compute what one rank does, and say what eager ranks say."""

from __future__ import annotations

import numpy as np
import pytest

import minipd as paddle
import minipd.distributed as dist
from minipd.dist.api import reshard, shard_layer, shard_tensor
from minipd.dist.simulate import simulate
from minipd.dist.static.dist_model import DistModel
from minipd.dist.static.strategy import DEFAULTS, Strategy
from minipd.nn import Layer, Linear, MSELoss
from minipd.nn import functional as F
from tests.dist.static_models import (
    F64,
    MEGATRON,
    S0,
    S1,
    SETTINGS,
    Eager,
    Mlp,
    R,
    Run,
    X,
    Y,
    adamw,
    alone,
    place_all,
    sgd,
)


def size_of(name):
    return {"uneven": {"hidden": 7}, "empty": {"hidden": 3}, "pp x dp x tp": {"bias": False}}.get(name, {})


@pytest.mark.parametrize("name", SETTINGS)
def test_equal_to_one_rank_and_step_for_step_to_eager(name):
    """Losses, predictions and parameters are those of one rank; the collectives and messages those of eager ranks, in
    their order."""
    losses, predicted, state = alone(**size_of(name))
    static = Run(SETTINGS[name](), "static")
    np.testing.assert_allclose(static.losses, losses, rtol=1e-10)
    np.testing.assert_allclose(static.predicted, predicted, rtol=1e-10)
    for key, value in state.items():
        np.testing.assert_allclose(static.state[key], value, rtol=1e-9, err_msg=key)
    assert static.log == Run(SETTINGS[name](), "eager").log


@pytest.mark.parametrize("name", ["dp x tp", "pp 4"])
def test_adamw(name):
    """With moments, which are where their parameters are."""
    losses, predicted, state = alone(adamw)
    static = Run(SETTINGS[name](), "static", adamw)
    np.testing.assert_allclose(static.losses, losses, rtol=1e-9)
    for key, value in state.items():
        np.testing.assert_allclose(static.state[key], value, rtol=1e-8, err_msg=key)
    assert static.log == Run(SETTINGS[name](), "eager", adamw).log


def clipped(layer):
    return paddle.optimizer.SGD(0.1, parameters=layer.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(0.05))


@pytest.mark.parametrize("name", ["dp x tp", "pp 2", "pp x dp x tp"])
def test_clipping_by_the_norm_of_all_gradients_wherever_they_are(name):
    losses, _, state = alone(clipped, **size_of(name))
    static = Run(SETTINGS[name](), "static", clipped)
    np.testing.assert_allclose(static.losses, losses, rtol=1e-9)
    for key, value in state.items():
        np.testing.assert_allclose(static.state[key], value, rtol=1e-8, err_msg=key)


# --------------------------------------------------------------------------------------- what else a layer may do
def both_ways(mesh, build, make_optimizer=sgd, x=X, y=Y, placements=(S0,), steps=3, loss=None, strategy=None):
    """(eager losses, static losses, the dist model of rank 0) of a layer that build(mesh) makes, on a mesh."""
    def run(way):
        def on_rank(grid):
            paddle.seed(11)
            layer = build(grid)
            optimizer = make_optimizer(layer)
            xs, ys = (shard_tensor(a, grid, list(placements)) for a in (x, y))
            step = Eager(layer, optimizer, loss) if way == "eager" else DistModel(layer, None, loss or MSELoss(),
                                                                               optimizer, strategy)
            return [float(step(xs, ys)) for _ in range(steps)], step
        return simulate(mesh, on_rank, dtype=F64)
    eager, static = run("eager"), run("static")
    assert all(losses == static[0][0] for losses, _ in static)
    np.testing.assert_allclose(static[0][0], eager[0][0], rtol=1e-9)
    return eager[0][0], static[0][0], static[0][1]


class Branching(Layer):
    """Which of two weights is used, tensors decide; a loop that they decide is around it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Linear(6, 4), Linear(6, 4)

    def forward(self, x):
        if x.mean() > 100.0:
            h = self.first(x)
        else:
            h = self.second(x) * 2.0
        i = paddle.zeros([], "int64")
        while i < 2:
            h = h * 0.5 + x.sum(axis=1, keepdim=True)
            i = i + 1
        return h


class Staged(paddle.nn.Layer):
    """Parameters on two stages; the third has none."""

    def __init__(self, stages):
        super().__init__()
        self.first, self.second, self.stages = paddle.nn.Linear(3, 3), paddle.nn.Linear(3, 2), stages
        for layer, mesh in zip((self.first, self.second), stages, strict=False):
            if mesh is not None:
                dist.shard_layer(layer, mesh)

    def forward(self, x):
        for mesh, layer in zip(self.stages, (self.first, self.second, paddle.tanh), strict=True):
            x = layer(x if mesh is None else dist.reshard(x, mesh, [R]))
        return x


def test_clipping_with_a_stage_that_has_no_parameters():
    """Its ranks are told whether the step was made: they count steps like the others."""
    x0 = np.random.default_rng(0).normal(size=(4, 3))

    def run(stages, programs):
        paddle.seed(1)
        net, loss = Staged(stages), paddle.nn.MSELoss()
        opt = paddle.optimizer.Adam(0.1, parameters=net.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(0.01))
        x, y = (paddle.to_tensor(t) if mesh is None else dist.shard_tensor(t, mesh, [R])
                for t, mesh in ((x0, stages[0]), (x0[:, :2], stages[2])))
        model = dist.to_static(net, None, loss, opt) if programs else None
        losses = []
        for _ in range(3):
            if model is None:
                out = loss(net(x), y)
                out.backward()
                opt.step()
                opt.clear_grad()
            else:
                out = model(x, y)
            losses.append(None if out is None else float(out))
        mine = [p.numpy() for p in net.parameters() if stages[0] is None or p.process_mesh.contains(dist.get_rank())]
        return losses, mine, opt.scalars()[1].item()
    losses, values, steps = simulate("x=1", lambda mesh: run([None] * 3, False), dtype=np.dtype("float64"))[0]
    found = simulate("x=3", lambda mesh: run([dist.ProcessMesh([r], ["x"]) for r in range(3)], True),
                     dtype=np.dtype("float64"))
    np.testing.assert_allclose(found[2][0], losses, rtol=1e-10)
    for value, want in zip([*found[0][1], *found[1][1]], values, strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-9)
    assert [count for *_, count in found] == [steps] * 3 == [3] * 3


def test_control_flow_of_tensors():
    _, _, model = both_ways("dp=2", lambda mesh: Branching())
    names = [op.name() for op in model.dist_main_program().walk()]
    assert "pd_op.if" in names and "pd_op.while" in names


class Kept(Layer):
    """Dropout and batch normalisation: random draws, and buffers that a step writes."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = Linear(6, 8), paddle.nn.BatchNorm1D(8), Linear(8, 4)

    def forward(self, x):
        return self.second(F.dropout(F.relu(self.norm(self.first(x))), 0.3, training=self.training))


@pytest.mark.parametrize("mesh, placements", [("dp=2", [S0]), ("dp=2,tp=2", [S0, R])])
def test_draws_and_buffers(mesh, placements):
    both_ways(mesh, lambda mesh: shard_layer(Kept(), mesh), placements=placements)


def test_buffers_are_written_in_training_alone():
    def on_rank(mesh):
        layer = Kept()
        model = DistModel(layer, None, MSELoss(), sgd(layer))
        x, y = shard_tensor(X, mesh, [S0]), shard_tensor(Y, mesh, [S0])
        seen = [layer.norm._mean.numpy().copy()]
        model.eval()
        model(x, y)
        seen.append(layer.norm._mean.numpy().copy())
        model.train()
        model(x, y)
        seen.append(layer.norm._mean.numpy().copy())
        return (seen[0] == seen[1]).all(), (seen[1] != seen[2]).any()
    assert simulate("dp=2", on_rank, dtype=F64) == [(True, True)] * 2


class Recomputed(Mlp):
    def forward(self, x):
        return self.second(paddle.distributed.fleet.utils.recompute(lambda h: F.gelu(self.first(h)), x))


def test_layers_that_are_computed_twice():
    losses, _, _ = alone(steps=3)
    for mesh, placed, given in (("dp=2", {}, [S0]), ("tp=2", MEGATRON, [R])):
        def build(grid, placed=placed):
            layer = Recomputed()
            place_all(layer, grid, placed)
            return layer
        both_ways(mesh, build, placements=given)


class Compiled(Mlp):
    def __init__(self):
        super().__init__()
        self.first.forward = paddle.jit.to_static(self.first.forward)


def test_layers_that_are_compiled_by_themselves():
    """They are a part of the program."""
    def on_rank(mesh):
        paddle.seed(3)
        layer = Compiled()
        model = DistModel(layer, None, MSELoss(), sgd(layer))
        return [float(model(shard_tensor(X, mesh, [S0]), shard_tensor(Y, mesh, [S0]))) for _ in range(3)]
    for found in simulate("dp=2", on_rank, dtype=F64):
        np.testing.assert_allclose(found, alone()[0][:3], rtol=1e-10)


def test_a_forward_that_asks_where_its_tensors_are():
    seen = []

    class Asking(Mlp):
        def forward(self, x):
            h = self.first(x)
            seen.append((h.is_dist(), h.placements, h.process_mesh == x.process_mesh))
            return self.second(reshard(h, h.process_mesh, [R, *h.placements[1:]]))

    def build(mesh):
        layer = Asking()
        place_all(layer, mesh, {"first.weight": [R, S1], "first.bias": [R, S0], "second.weight": [R, S0]})
        return layer
    both_ways("dp=2,tp=2", build, placements=[S0, R])
    assert set(map(str, seen)) == {"(True, [Shard(dim=0), Shard(dim=1)], True)"}


def test_lower_precision():
    def build(mesh):
        layer = Mlp()
        place_all(layer, mesh, MEGATRON)
        return layer
    found = {}

    def on_rank(mesh, enable):
        paddle.seed(11)
        layer = build(mesh)
        strategy = Strategy({"amp": {"enable": enable, "dtype": "bfloat16"}})
        model = DistModel(layer, None, MSELoss(), sgd(layer), strategy)
        x, y = (shard_tensor(a.astype("float32"), mesh, [R]) for a in (X, Y))
        found[enable] = [float(model(x, y)) for _ in range(2)]
        return any("bf16" in str(v.type()) for op in model.dist_main_program().walk() for v in op.results())
    assert simulate("tp=2", lambda mesh: on_rank(mesh, True)) == [True, True]
    assert simulate("tp=2", lambda mesh: on_rank(mesh, False)) == [False, False]
    np.testing.assert_allclose(found[True], found[False], rtol=2e-2)
    assert found[True] != found[False]


def test_fused_passes():
    def on_rank(mesh):
        layer = Mlp()
        place_all(layer, mesh, MEGATRON)
        strategy = Strategy({"fused_passes": {"enable": True, "gemm_epilogue": True}})
        model = DistModel(layer, strategy=strategy)
        out = model(shard_tensor(X, mesh, [R]))[0]
        np.testing.assert_allclose(out, layer(shard_tensor(X, mesh, [R])).numpy(), rtol=1e-9)
        return [op.name() for op in model.dist_main_program().walk()].count("pd_op.fused_gemm_epilogue") > 0
    assert simulate("tp=2", on_rank, dtype=F64) == [True, True]


# ------------------------------------------------------------------------------------------ loaders and programs
class Rows(paddle.io.Dataset):
    def __getitem__(self, i):
        return X[i], Y[i]

    def __len__(self):
        return len(X)


def loader_of(mesh, batch_size=4):
    return paddle.distributed.shard_dataloader(paddle.io.DataLoader(Rows(), batch_size=batch_size), meshes=[mesh],
                                               shard_dims="dp")


def test_a_loader_of_distributed_batches():
    def on_rank(mesh):
        paddle.seed(3)
        layer = Mlp()
        loader = loader_of(mesh)
        model = paddle.distributed.to_static(layer, loader, MSELoss(), sgd(layer))
        return [float(model(x, y)) for x, y in loader()]

    def eager(mesh):
        paddle.seed(3)
        layer = Mlp()
        step = Eager(layer, sgd(layer))
        return [float(step(paddle.to_tensor(X[i:i + 4]), paddle.to_tensor(Y[i:i + 4]))) for i in (0, 4)]
    wanted = simulate("dp=1", eager, dtype=F64)[0]
    for found in simulate("dp=2", on_rank, dtype=F64):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_programs_before_the_first_call():
    def on_rank(mesh):
        layer = Mlp()
        model = paddle.distributed.to_static(layer, loader_of(mesh), MSELoss(), sgd(layer))
        serial, local = model.serial_main_program("train"), model.dist_main_program("train")
        shapes = [[op.result(0).shape for op in p.walk() if op.name() == "pd_op.data"] for p in (serial, local)]
        names = [[op.name() for op in p.walk()] for p in (serial, local, model.dist_main_program("predict"))]
        assert "pd_op.all_reduce" in names[1] and "pd_op.all_reduce" not in names[0]
        assert "pd_op.sgd_" in str(names[1]) or "pd_op.sgd" in names[1]
        assert not any("sgd" in n for n in names[2]) and layer.training
        assert model.dist_startup_program().num_ops() == 0
        return shapes
    assert simulate("dp=2", on_rank, dtype=F64) == [[[(4, 6), (4, 4)], [(2, 6), (2, 4)]]] * 2


def test_the_last_batch_may_be_smaller():
    """Another shape is another program; uneven parts too."""
    def on_rank(mesh):
        paddle.seed(3)
        layer = Mlp()
        model = DistModel(layer, None, MSELoss(), sgd(layer))
        return [float(model(shard_tensor(X[:n], mesh, [S0]), shard_tensor(Y[:n], mesh, [S0]))) for n in (8, 3, 1, 8)]

    def eager(mesh):
        paddle.seed(3)
        layer = Mlp()
        step = Eager(layer, sgd(layer))
        return [float(step(paddle.to_tensor(X[:n]), paddle.to_tensor(Y[:n]))) for n in (8, 3, 1, 8)]
    wanted = simulate("dp=1", eager, dtype=F64)[0]
    for found in simulate("dp=2", on_rank, dtype=F64):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_a_plain_batch_is_one_that_every_rank_has():
    losses, _, _ = alone(steps=3)

    def on_rank(mesh):
        paddle.seed(3)
        layer = Mlp()
        place_all(layer, mesh, MEGATRON)
        model = DistModel(layer, None, MSELoss(), sgd(layer))
        return [float(model(paddle.to_tensor(X), paddle.to_tensor(Y))) for _ in range(3)]
    for found in simulate("tp=2", on_rank, dtype=F64):
        np.testing.assert_allclose(found, losses[:3], rtol=1e-10)


def test_an_optimizer_that_keeps_its_state_in_parts():
    def halves(name, param, moment):
        return shard_tensor(moment, param.process_mesh, [S0])

    def on_rank(mesh):
        paddle.seed(3)
        layer = Mlp()
        place_all(layer, mesh, {})
        optimizer = paddle.distributed.shard_optimizer(adamw(layer), halves)
        model = DistModel(layer, None, MSELoss(), optimizer)
        x, y = shard_tensor(X, mesh, [S0]), shard_tensor(Y, mesh, [S0])
        losses = [float(model(x, y)) for _ in range(3)]
        kept = [t._local_shape[0] * 2 == t.shape[0] for n, t in model.state_dict("opt").items() if "moment" in n]
        return losses, kept
    losses, _, _ = alone(adamw)
    for found, kept in simulate("dp=2", on_rank, dtype=F64):
        np.testing.assert_allclose(found, losses[:3], rtol=1e-9)
        assert len(kept) == 8 and all(kept)


@pytest.mark.parametrize("name", ["dp", "tp", "pp 4"])
@pytest.mark.parametrize("asked", ["strategy", "optimizer"])
def test_gradients_of_several_passes(name, asked):
    """A batch in two parts is one step, with the numbers of the whole; gradients are reduced once."""
    losses, _, state = alone(steps=3)
    setting, texts = SETTINGS[name](), []

    def on_rank(mesh):
        paddle.seed(3)
        layer = setting.build(mesh)
        optimizer, strategy = sgd(layer), None
        if asked == "optimizer":
            optimizer = paddle.distributed.shard_optimizer(optimizer, gradient_accumulation_steps=2)
        else:
            strategy = Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
        model = DistModel(layer, None, MSELoss(), optimizer, strategy)
        x, y = setting.given(mesh, X, "input"), setting.given(mesh, Y, "label")
        found = [model(x, y) for _ in range(3)]
        texts.append(model.dist_main_program())
        return found
    for found in simulate(setting.mesh, on_rank, dtype=F64):
        if found[0] is not None:
            np.testing.assert_allclose([float(x) for x in found], losses[:3], rtol=1e-10)
    if name == "dp":
        assert [op.name() for op in texts[0].walk()].count("pd_op.all_reduce") == 5    # and the loss


def test_a_batch_that_cannot_be_cut():
    def call(mesh):
        layer = Mlp()
        strategy = Strategy({"gradient_merge": {"enable": True, "k_steps": 3}})
        model = DistModel(layer, None, MSELoss(), sgd(layer), strategy)
        model(shard_tensor(X, mesh, [S0]), shard_tensor(Y, mesh, [S0]))
    refused(ValueError, r"expected a batch that 3 passes over 2 ranks can share, got f64\[8_dp, 6\]", call)


# ------------------------------------------------------------------------------------------------------- state
def test_state_is_what_the_layer_and_the_optimizer_have():
    def on_rank(mesh):
        layer = Mlp()
        place_all(layer, mesh, MEGATRON)
        model = DistModel(layer, None, MSELoss(), adamw(layer))
        x, y = shard_tensor(X, mesh, [R]), shard_tensor(Y, mesh, [R])
        first = [float(model(x, y)) for _ in range(2)]
        kept = {name: paddle.to_tensor(t.numpy().copy()) for name, t in model.state_dict().items()}
        then = [float(model(x, y)) for _ in range(2)]
        model.set_state_dict(kept)
        again = [float(model(x, y)) for _ in range(2)]
        assert set(model.state_dict("param")) == {"first.weight", "first.bias", "second.weight", "second.bias"}
        assert model.state_dict("param")["first.weight"] is layer.first.weight
        assert model.state_dict("param")["first.weight"].placements == [S1]
        assert sum("moment" in name for name in model.state_dict("opt")) == 8
        return first[1] != then[0], then == again
    assert simulate("tp=2", on_rank, dtype=F64) == [(True, True)] * 2


def test_state_that_does_not_fit():
    def on_rank(mesh):
        layer = Mlp()
        model = DistModel(layer, None, MSELoss(), sgd(layer))
        before = layer.first.weight.numpy().copy()
        with pytest.raises(ValueError, match=r"expected first.weight as f64\[6, 8\], got f64\[2, 8\]"):
            model.set_state_dict({"first.bias": paddle.zeros([8], "float64"),
                                  "first.weight": paddle.zeros([2, 8], "float64")})
        with pytest.raises(ValueError, match="expected names of its state, first.weight, .*, got 'third.weight'"):
            model.set_state_dict({"third.weight": paddle.zeros([2, 8])})
        with pytest.raises(ValueError, match='expected mode "all", "param" or "opt", got \'some\''):
            model.state_dict("some")
        return (layer.first.weight.numpy() == before).all()
    assert simulate("dp=2", on_rank, dtype=F64) == [True, True]


# ---------------------------------------------------------------------------------------------------- bad input
def refused(error, match, call, mesh="dp=2"):
    def on_rank(grid):
        with pytest.raises(error, match=match):
            call(grid)
        return True
    assert all(simulate(mesh, on_rank, dtype=F64))


def test_what_cannot_be_a_model():
    layer = Mlp()
    refused(TypeError, "to_static: expected a layer, got 3", lambda mesh: DistModel(3))
    refused(TypeError, "expected loss to be a layer or a function, got 3", lambda mesh: DistModel(layer, loss=3))
    refused(TypeError, "expected a dist.Strategy, got {}", lambda mesh: DistModel(layer, strategy={}))
    refused(RuntimeError, "DistModel.train: expected a loss and an optimizer", lambda mesh: DistModel(layer).train())
    refused(RuntimeError, "DistModel.eval: expected a loss, got none", lambda mesh: DistModel(layer).eval())
    refused(RuntimeError, "expected a loader, an input_spec or a call before the program of the mode 'predict'",
            lambda mesh: DistModel(layer).dist_main_program())
    refused(ValueError, "expected the mode 'train', 'eval' or 'predict', got 'test'",
            lambda mesh: DistModel(layer).dist_main_program("test"))
    refused(TypeError, "expected tensors, or lists of tensors, got ndarray", lambda mesh: DistModel(layer)(X))
    refused(ValueError, "expected inputs and labels in the mode 'eval', got 1 argument",
            lambda mesh: DistModel(layer, loss=MSELoss())(paddle.to_tensor(X)))


def test_a_loss_that_is_not_one_number():
    def call(mesh):
        layer = Mlp()
        DistModel(layer, None, MSELoss(reduction="none"), sgd(layer))(paddle.to_tensor(X), paddle.to_tensor(Y))
    refused(ValueError, r"expected a loss of one number to train with, got one of shape \[8, 4\]", call)


@pytest.mark.parametrize("name", ["sharding", "pipeline", "recompute", "qat", "tuning", "dataset",
                                  "dp_optimization", "fused_linear_promotion"])
def test_a_strategy_that_is_not_done_is_refused_by_name(name):
    with pytest.raises(NotImplementedError, match=f"expected a strategy without {name}, which is not done in "
                                                  "distributed programs"):
        DistModel(Mlp(), strategy=Strategy({name: {"enable": True}}))


def test_a_strategy_of_other_precision_is_refused():
    with pytest.raises(NotImplementedError, match="expected amp with dtype='bfloat16' and level='o1', got 'float16'"):
        DistModel(Mlp(), strategy=Strategy({"amp": {"enable": True}}))


def test_strategies():
    strategy = Strategy()
    for name, options in DEFAULTS.items():
        found = strategy.to_dict() if name == "base" else strategy.get(name)
        assert {k: found[k] for k in options} == options
    strategy.from_dict({"pipeline": {"micro_batch_size": 2}, "seed": 4})
    assert strategy.pipeline.micro_batch_size == 2 and strategy.seed == 4 and strategy.pipeline.vpp_degree == 1
    assert Strategy().pipeline.micro_batch_size == 1
    with pytest.raises(ValueError, match="expected options of amp among enable, dtype, .*, got 'typo'"):
        Strategy({"amp": {"typo": 1}})
    with pytest.raises(ValueError, match="expected categories among .*, got 'ampp'"):
        Strategy({"ampp": {}})
    with pytest.raises(ValueError, match="expected a dict of categories and their options, got 3"):
        Strategy(3)
