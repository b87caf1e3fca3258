"""GradScaler: scales, skips and adapts, also where Python decides nothing; decorate."""

import numpy as np
import pytest

import minipd as paddle
from minipd import amp, nn
from minipd.dist.api import shard_tensor
from minipd.dist.placements import Replicate, Shard
from minipd.executor import Executor
from minipd.framework.meta import Meta
from minipd.ir.traced import trace
from tests.dist.ranks import on_mesh


def parameter(values=(1.0, -2.0), dtype="float32"):
    return paddle.create_parameter([len(values)], dtype, default_initializer=nn.initializer.Assign(np.array(values)))


def one_step(scaler, optimizer, p, factor):
    scaler.scale((p * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.clear_grad()


def test_the_scale_follows_the_gradients():
    p = parameter()
    sgd = paddle.optimizer.SGD(0.5, [p])
    scaler = amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=2, decr_every_n_nan_or_inf=2)
    seen = []
    for factor in (1, 1, np.inf, np.inf, np.nan, 1, np.inf, 1, 1, 1):
        before = p.tolist()
        one_step(scaler, sgd, p, float(factor))
        assert p.tolist() == ([v - 0.5 for v in before] if factor == 1 else before)
        seen.append(scaler.get_init_loss_scaling())
    assert seen == [8, 16, 16, 8, 8, 8, 8, 8, 16, 16]
    assert int(sgd.scalars()[1]) == 6, "a step that is skipped is no step"


def test_bounds_and_a_fixed_scale():
    p = parameter()
    sgd = paddle.optimizer.SGD(0.5, [p])
    scaler = amp.GradScaler(init_loss_scaling=2.0, decr_ratio=0.25)
    one_step(scaler, sgd, p, float("inf"))
    assert scaler.get_init_loss_scaling() == 1.0, "below 1 it would do harm"
    scaler = amp.GradScaler(init_loss_scaling=3e38, incr_every_n_steps=1)
    p.grad = paddle.to_tensor([0.0, 0.0])
    scaler.step(sgd)
    scaler.update()
    assert scaler.get_init_loss_scaling() == np.float32(3e38)
    scaler = amp.GradScaler(init_loss_scaling=4.0, use_dynamic_loss_scaling=False)
    sgd.clear_grad()
    one_step(scaler, sgd, p, float("inf"))
    assert scaler.get_init_loss_scaling() == 4.0 and np.isfinite(p.numpy()).all()


def test_off_it_does_nothing():
    p, scaler = parameter(), amp.GradScaler(enable=False)
    sgd = paddle.optimizer.SGD(0.5, [p])
    loss = p.sum()
    assert scaler.scale(loss) is loss and scaler.state_dict() == {} and not scaler.is_enable()
    loss.backward()
    scaler.unscale_(sgd)
    scaler.minimize(sgd, loss)
    assert p.tolist() == [0.5, -2.5]


def test_clipping_sees_unscaled_gradients():
    p = parameter()
    sgd = paddle.optimizer.SGD(1.0, [p], grad_clip=nn.ClipGradByGlobalNorm(5.0))
    scaler = amp.GradScaler(init_loss_scaling=1024.0)
    scaler.scale((p * paddle.to_tensor([3.0, 4.0])).sum()).backward()
    scaler.unscale_(sgd)
    assert p.grad.tolist() == [3.0, 4.0]
    scaler.step(sgd)
    assert p.tolist() == [-2.0, -6.0]
    with pytest.raises(RuntimeError, match="step: this optimizer has made a step already since the last update"):
        scaler.step(sgd)
    with pytest.raises(RuntimeError, match="unscale_: the gradients of this optimizer have been unscaled already"):
        scaler.unscale_(sgd)
    scaler.update()


def test_two_optimizers_share_a_scale():
    p, q = parameter(), parameter()
    one, other = paddle.optimizer.SGD(1.0, [p]), paddle.optimizer.SGD(1.0, [q])
    scaler = amp.GradScaler(init_loss_scaling=8.0)
    scaler.scale((p + q * float("inf")).sum()).backward()
    scaler.step(one)
    scaler.step(other)
    scaler.update()
    assert p.tolist() == [0.0, -3.0] and q.tolist() == [1.0, -2.0] and scaler.get_init_loss_scaling() == 4.0


def test_gradients_that_float16_would_lose():
    """1e-8 is no float16, and 65536 times it is one: what arrives in the float32 copy is right."""
    p = parameter([0.0, 0.0], "float16")
    sgd = paddle.optimizer.SGD(1.0, [p], multi_precision=True)
    scaler = amp.GradScaler()
    for scaled in (False, True):
        loss = (p.astype("float32") * 1e-8).sum()
        (scaler.scale(loss) if scaled else loss).backward()
        (scaler.step if scaled else type(sgd).step)(sgd) if scaled else sgd.step()
        got = sgd.state_of(p)["fp32_master"].numpy()
        np.testing.assert_allclose(got, -1e-8 * scaled, rtol=1e-3)
        sgd.clear_grad()


def test_state(tmp_path):
    p, scaler = parameter(), amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=5)
    for _ in range(3):
        one_step(scaler, paddle.optimizer.SGD(0.5, [p]), p, 1.0)
    paddle.save(scaler.state_dict(), tmp_path / "scaler")
    other = amp.GradScaler()
    other.load_state_dict(paddle.load(tmp_path / "scaler", return_numpy=True))
    assert other.state_dict() == scaler.state_dict() and other.state_dict()["incr_count"] == 3
    assert set(scaler.state_dict()) == {
        "scale", "incr_ratio", "decr_ratio", "incr_count", "decr_count", "incr_every_n_steps",
        "decr_every_n_nan_or_inf", "use_dynamic_loss_scaling"}, "Paddle's names"
    with pytest.raises(RuntimeError, match="got an empty one"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="expected the entries"):
        other.load_state_dict({"scale": 1.0})


@pytest.mark.parametrize("options,said", [
    ({"incr_ratio": 1.0}, "incr_ratio > 1"), ({"decr_ratio": 1.5}, "decr_ratio between 0 and 1"),
    ({"incr_every_n_steps": 0}, "incr_every_n_steps to be a positive int"), ({"init_loss_scaling": 0}, "> 0, got 0"),
    ({"decr_every_n_nan_or_inf": 1.5}, "decr_every_n_nan_or_inf to be a positive int")])
def test_what_it_refuses(options, said):
    with pytest.raises(ValueError, match=said):
        amp.GradScaler(**options)


def test_a_whole_step_in_one_program():
    """Forward in float16, backward, unscaling, the decision, the update of weights and scale: traced once."""
    def build():
        paddle.seed(2)
        net = nn.Linear(3, 2)
        adam = paddle.optimizer.AdamW(0.1, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))
        return net, adam, amp.GradScaler(init_loss_scaling=1024.0, incr_every_n_steps=2)

    def step_of(net, adam, scaler):
        def step(x):
            with amp.auto_cast():
                loss = net(x).astype("float32").square().mean()
            scaler.scale(loss).backward()
            scaler.step(adam)
            scaler.update()
            adam.clear_grad()
            return loss
        return step

    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(4, 3)).astype("float32") * (np.inf if i == 2 else 1) for i in range(6)]
    net, adam, scaler = build()
    eager = step_of(net, adam, scaler)
    for x in batches:
        eager(paddle.to_tensor(x))
    want = [t.numpy() for t in (*net.parameters(), *adam.prepare().values(), *scaler.prepare().values())]
    net, adam, scaler = build()
    held = [*net.parameters(), *adam.prepare().values(), *scaler.prepare().values()]
    traced = trace(step_of(net, adam, scaler), Meta((4, 3), np.dtype("float32")), state={t.name: t for t in held})
    executor, scope = Executor(traced.program), {t.name: t.payload for t in held}
    for x in batches:
        executor.run({traced.inputs[0]: x}, scope)
    for t, w in zip(held, want, strict=True):
        np.testing.assert_allclose(scope[t.name], w, rtol=1e-6, err_msg=t.name)
    assert scope[scaler._scale.name] == 2048.0 and scope[adam.scalars()[1].name] == 5


def test_ranks_decide_together():
    """An infinity in the shard of one rank lets all of them skip."""
    def run(mesh):
        p = parameter(np.arange(4.0))
        shard_tensor(p, mesh, [Shard(0), Replicate()])
        sgd, scaler = paddle.optimizer.SGD(1.0, [p]), amp.GradScaler(init_loss_scaling=4.0)
        seen = []
        for last in (np.inf, 1.0):
            weights = shard_tensor(np.array([1, 1, 1, last], "float32"), mesh, [Replicate(), Replicate()])
            scaler.scale((p * weights).sum()).backward()
            scaler.step(sgd)
            scaler.update()
            sgd.clear_grad()
            seen.append((p.numpy().tolist(), scaler.get_init_loss_scaling()))
        return seen
    for seen in on_mesh("x=2,y=2", run):
        assert seen == [([0.0, 1.0, 2.0, 3.0], 2.0), ([-1.0, 0.0, 1.0, 2.0], 2.0)]


# -------------------------------------------------------------------------------------------------------- decorate
def test_decorate():
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1D(3), nn.LayerNorm(3), nn.Linear(3, 1))
    adam = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    assert amp.decorate(net, level="O1") is net and net[0].weight.dtype == "float32"
    same = net[0].weight
    got, optimizer = amp.decorate(net, adam, level="O2", dtype="bfloat16", excluded_layers=net[3])
    assert got is net and optimizer is adam and adam.multi_precision and net[0].weight is same
    kinds = {name: x.dtype.name for name, x in net.state_dict().items()}
    assert kinds["0.weight"] == kinds["0.bias"] == kinds["2.weight"] == "bfloat16"
    assert {kinds[k] for k in kinds if k[0] in "13"} == {"float32"}
    with amp.auto_cast(level="O2", dtype="bfloat16"):
        net(paddle.rand([4, 2])).mean().backward()
    adam.step()
    assert list(adam.state_dict()["master_weights"]) == [p.name for p in net.parameters() if p.dtype == "bfloat16"]


def test_decorating_several_and_saving_wide():
    a, b = nn.Linear(1, 1), nn.Linear(1, 1)
    models, made = amp.decorate([a, b], [paddle.optimizer.SGD(0.1, a.parameters())], level="O2", save_dtype="float32",
                                master_weight=False, excluded_layers=[nn.LayerNorm])
    assert models == [a, b] and not made[0].multi_precision
    assert a.weight.dtype == "float16" and a.state_dict()["weight"].dtype == "float32"


def test_what_decorate_refuses():
    net = nn.Linear(1, 1)
    sgd = paddle.optimizer.Momentum(0.1, parameters=net.parameters())
    net(paddle.ones([1, 1])).backward()
    sgd.step()
    for args, options, error, said in [
            ((net,), {"level": "O4"}, ValueError, "level O1 or O2"), ((3,), {}, TypeError, "models to be one Layer"),
            ((net, 3), {}, TypeError, "optimizers to be one Optimizer"),
            ((net, sgd), {"level": "O2"}, ValueError, "made no step yet, got one with state for 2 parameters")]:
        with pytest.raises(error, match=said):
            amp.decorate(*args, **options)
