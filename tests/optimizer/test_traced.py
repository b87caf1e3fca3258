"""A whole training step as a program: forward, backward, clipping and update, run again and again."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.executor import Executor
from minipd.ir.traced import trace
from minipd.nn import functional as F
from minipd.optimizer import AdamW, lr
from minipd.regularizer import L2Decay


def build():
    paddle.seed(3)
    model = nn.Sequential(nn.Embedding(7, 4), nn.RMSNorm(4), nn.Linear(4, 7, bias_attr=paddle.ParamAttr(
        learning_rate=0.5, regularizer=L2Decay(0.1))), nn.Dropout(0.2)).to(dtype="float64")
    rate = lr.LinearWarmup(0.1, 3, 0.0, 0.1)
    adamw = AdamW(rate, parameters=model.parameters(), weight_decay=0.2, grad_clip=nn.ClipGradByGlobalNorm(0.3),
                  apply_decay_param_fun=lambda name: ".w_" in name)
    return model, adamw, rate


def batches():
    rng = np.random.default_rng(0)
    for _ in range(5):
        yield rng.integers(0, 7, (3, 4)), np.where(rng.uniform(size=(3, 4)) < 0.3, -100, rng.integers(0, 7, (3, 4)))


def step_of(model, adamw, minimize):
    def step(ids, labels):
        loss = F.cross_entropy(model(ids), labels)
        if minimize:
            adamw.minimize(loss)
        else:
            loss.backward()
            adamw.step()
        adamw.clear_grad()
        return loss
    return step


def run_eagerly():
    model, adamw, rate = build()
    losses = []
    for i, batch in enumerate(batches()):
        paddle.framework.rank.current().rng.set_step(i)
        losses.append(step_of(model, adamw, False)(*map(paddle.to_tensor, batch)).item())
        rate.step()
    return losses, [p.numpy() for p in model.parameters()], {k: np.asarray(v) for k, v in adamw.prepare().items()}


def run_traced(minimize=False, symbolic=False):
    model, adamw, rate = build()
    state = {p.name: p for p in model.parameters()} | adamw.prepare()
    spec = [paddle.framework.meta.Meta((None if symbolic else 3, 4), np.dtype(np.int64))] * 2
    traced = trace(step_of(model, adamw, minimize), *spec, state=state)
    assert set(traced.state) == set(state) and not traced.captures
    names = [op.name() for op in traced.program.global_block()]
    assert names.count("pd_op.adamw") == 4 and "pd_op.cross_entropy_with_softmax_grad" in names
    executor, losses = Executor(traced.program), []
    rng = paddle.framework.rank.current().rng
    for i, batch in enumerate(batches()):
        rng.set_step(i)
        feed = dict(zip(traced.inputs, batch, strict=True))
        feed |= {name: rng.next_key(path) for name, path in traced.draws.items()}
        scope = {name: t.payload for name, t in state.items()}
        losses.append(executor.run(feed, scope)[traced.outputs[0]].item())
        for name, t in state.items():
            t.payload = scope[name]
        rate.step()                     # reaches the program through the one tensor it reads
    return losses, [p.numpy() for p in model.parameters()], {k: np.asarray(v) for k, v in adamw.prepare().items()}


def assert_same(one, other):
    assert one[0] == other[0]
    for a, b in zip([*one[1], *one[2].values()], [*other[1], *other[2].values()], strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_traced_step_is_the_eager_step():
    """To the bit: both are the same operators in the same order.  The rate and the count are not baked in."""
    assert_same(run_traced(), run_eagerly())


def test_minimize_adds_the_backward_computation():
    assert_same(run_traced(minimize=True), run_eagerly())


def test_the_batch_size_may_be_a_symbol():
    losses, params, _ = run_traced(symbolic=True)
    np.testing.assert_allclose(losses, run_eagerly()[0], rtol=1e-12)


def test_tracing_a_step_without_state_says_what_to_do():
    model, adamw, _ = build()
    spec = [paddle.framework.meta.Meta((3, 4), np.dtype(np.int64))] * 2
    with pytest.raises(RuntimeError, match=r"AdamW: the state of .* must exist before the step is traced"):
        trace(step_of(model, adamw, False), *spec, state={p.name: p for p in model.parameters()})
