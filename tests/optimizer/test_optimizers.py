"""Steps of optimizers: against Paddle's numbers, and against numpy over many steps of a small model."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.nn import ClipGradByGlobalNorm, ClipGradByValue
from minipd.optimizer import ASGD, SGD, Adagrad, Adam, AdamW, Momentum, RMSProp, Rprop
from minipd.regularizer import L1Decay, L2Decay

GRADS = [[0.5, -1.0, 2.0], [1.5, 0.25, -3.0], [-0.5, 0.75, 1.0]]

# What PaddlePaddle 3.3.1 makes of float64 [1, -2, 3] in three steps with these gradients.
BY_PADDLE = [
    (lambda ps: SGD(0.1, parameters=ps), [0.85, -2.0, 3.0]),
    (lambda ps: SGD(0.1, parameters=ps, weight_decay=0.2), [0.796172, -1.885844, 2.825496]),
    (lambda ps: SGD(0.1, parameters=ps, weight_decay=L2Decay(0.2)), [0.796172, -1.885844, 2.825496]),
    (lambda ps: SGD(0.1, parameters=ps, weight_decay=L1Decay(0.2)), [0.79, -1.94, 2.94]),
    (lambda ps: SGD(0.1, parameters=ps, grad_clip=ClipGradByGlobalNorm(1.0)), [0.97071963, -2.01949796, 2.92763001]),
    (lambda ps: SGD(0.1, parameters=ps, grad_clip=ClipGradByValue(0.6)), [0.94, -2.025, 2.94]),
    (lambda ps: Adam(0.1, parameters=ps), [0.759852707, -1.86132702, 2.92613685]),
    (lambda ps: Adam(0.1, beta1=0.8, beta2=0.9, epsilon=1e-3, parameters=ps, weight_decay=0.2),
     [0.749197009, -1.79705847, 2.88330718]),
    (lambda ps: AdamW(0.1, parameters=ps, weight_decay=0.3), [0.681189047, -1.69399142, 2.66932274]),
    (lambda ps: AdamW(0.1, parameters=ps, weight_decay=0.3, grad_clip=ClipGradByGlobalNorm(1.0)),
     [0.703877346, -1.70359883, 2.62160586]),
]


def parameter(values=(1.0, -2.0, 3.0), dtype="float64", **attributes):
    return paddle.create_parameter([len(values)], dtype, attr=paddle.ParamAttr(
        initializer=nn.initializer.Assign(np.array(values)), **attributes))


def descend(optimizer, p, grads=GRADS):
    for g in grads:
        if g is not None:
            (p * paddle.to_tensor(np.array(g), p.dtype)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return p.numpy()


@pytest.mark.parametrize("make,values", BY_PADDLE)
def test_three_steps_are_paddles(make, values):
    p = parameter()
    np.testing.assert_allclose(descend(make([p]), p), values, rtol=2e-8)


def adamw_by_numpy(p, grads, lr, decay, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(grads, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p = p - lr * decay * p - lr * (m / (1 - beta1 ** t)) / (np.sqrt(v / (1 - beta2 ** t)) + epsilon)
    return p


def test_twenty_steps_of_a_model():
    """Linear regression whose gradient numpy knows, with a schedule, decay and clipping."""
    rng = np.random.default_rng(0)
    w, xs, ys = rng.normal(size=(3, 2)), rng.normal(size=(20, 5, 3)), rng.normal(size=(20, 5, 2))
    layer = nn.Linear(3, 2, bias_attr=False).to(dtype="float64")
    layer.weight.set_value(w)
    rate = paddle.optimizer.lr.ExponentialDecay(0.1, 0.9)
    adamw = AdamW(rate, parameters=layer.parameters(), weight_decay=0.1, epsilon=1e-5,
                  grad_clip=ClipGradByGlobalNorm(0.5))
    m = v = np.zeros_like(w)
    for t, (x, y) in enumerate(zip(xs, ys, strict=True), 1):
        g = 2 * x.T @ (x @ w - y) / y.size
        g = g * min(1.0, 0.5 / np.sqrt((g * g).sum()))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        lr = 0.1 * 0.9 ** (t - 1)
        w = w * (1 - lr * 0.1) - lr / (1 - 0.9 ** t) * m / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-5)
        nn.functional.mse_loss(layer(paddle.to_tensor(x)), paddle.to_tensor(y)).backward()
        adamw.step()
        adamw.clear_grad()
        rate.step()
        np.testing.assert_allclose(layer.weight.numpy(), w, rtol=1e-12)
    assert int(adamw.scalars()[1]) == 20


def test_parameters_without_gradient_are_left_alone_and_counted_by_themselves():
    """A parameter whose first gradient comes late has its first step then: the bias of its averages is its own."""
    late, always = parameter(), parameter()
    adamw = AdamW(0.1, parameters=[late, always], weight_decay=0.2)
    for i, g in enumerate(GRADS):
        total = (always * paddle.to_tensor(np.array(g))).sum()
        (total + (late * paddle.to_tensor(np.array(g))).sum() if i else total).backward()
        adamw.step()
        adamw.clear_grad()
        if i == 0:
            assert late.tolist() == [1.0, -2.0, 3.0]
    start, grads = np.array([1.0, -2.0, 3.0]), np.array(GRADS)
    np.testing.assert_allclose(late.numpy(), adamw_by_numpy(start, grads[1:], 0.1, 0.2), rtol=1e-12)
    np.testing.assert_allclose(always.numpy(), adamw_by_numpy(start, grads, 0.1, 0.2), rtol=1e-12)


def test_frozen_parameters_stay():
    p, frozen = parameter(), parameter(trainable=False)
    adamw = AdamW(0.1, parameters=[p, frozen])
    (p * frozen).sum().backward()
    adamw.step()
    assert frozen.tolist() == [1.0, -2.0, 3.0] and frozen.grad is None
    assert p.tolist() != frozen.tolist()


def test_each_parameter_may_have_its_own_terms():
    p, slow, decayed = parameter(), parameter(learning_rate=0.5), parameter(regularizer=L2Decay(0.2))
    sgd = SGD(0.1, parameters=[p, slow, decayed])
    ((p + slow + decayed) * paddle.to_tensor(np.array(GRADS[0]))).sum().backward()
    sgd.step()
    np.testing.assert_allclose(p.numpy(), [0.95, -1.9, 2.8], rtol=1e-12)
    np.testing.assert_allclose(slow.numpy(), [0.975, -1.95, 2.9], rtol=1e-12)
    np.testing.assert_allclose(decayed.numpy(), [0.93, -1.86, 2.74], rtol=1e-12)


def test_groups_have_options_of_their_own():
    plain, special, rest = parameter(), parameter(), parameter()
    adamw = AdamW(0.1, weight_decay=0.3, grad_clip=ClipGradByValue(1.0), parameters=[
        {"params": [special], "learning_rate": 0.5, "weight_decay": 0.0, "grad_clip": None},
        {"params": [plain, rest]}])
    for g in GRADS:
        ((plain + special + rest) * paddle.to_tensor(np.array(g))).sum().backward()
        adamw.step()
        adamw.clear_grad()
    start, grads = np.array([1.0, -2.0, 3.0]), np.array(GRADS)
    np.testing.assert_allclose(special.numpy(), adamw_by_numpy(start, grads, 0.05, 0.0), rtol=1e-12)
    for p in (plain, rest):
        np.testing.assert_allclose(p.numpy(), adamw_by_numpy(start, grads.clip(-1, 1), 0.1, 0.3), rtol=1e-12)


def test_a_norm_is_that_of_its_group():
    one, other = parameter(), parameter()
    sgd = SGD(1.0, grad_clip=ClipGradByGlobalNorm(1.0), parameters=[{"params": [one]}, {"params": [other]}])
    (one * paddle.to_tensor([3.0, 0, 0], "float64") + other * paddle.to_tensor([0.5, 0, 0], "float64")).sum().backward()
    sgd.step()
    np.testing.assert_allclose([one.tolist()[0], other.tolist()[0]], [0.0, 0.5], atol=1e-12)


def test_decay_and_rate_by_parameter():
    w, b = parameter(name="w"), parameter(name="b")
    adamw = AdamW(0.1, parameters=[w, b], weight_decay=0.3, apply_decay_param_fun=lambda name: name == "w",
                  lr_ratio=lambda p: 0.5 if p.name == "b" else 1.0)
    for g in GRADS:
        ((w + b) * paddle.to_tensor(np.array(g))).sum().backward()
        adamw.step()
        adamw.clear_grad()
    start, grads = np.array([1.0, -2.0, 3.0]), np.array(GRADS)
    np.testing.assert_allclose(w.numpy(), adamw_by_numpy(start, grads, 0.1, 0.3), rtol=1e-12)
    np.testing.assert_allclose(b.numpy(), adamw_by_numpy(start, grads, 0.05, 0.0), rtol=1e-12)


# -------------------------------------------------------------------------------------------------- low precision
def test_a_float32_copy_keeps_what_bfloat16_rounds_away():
    """1 - 2^-10 is no bfloat16: without the copy each of these steps would be lost."""
    for precise, want in ((False, 1.0), (True, 1 - 16 * 2.0 ** -10)):
        p = parameter([1.0], "bfloat16")
        descend(SGD(2.0 ** -10, parameters=[p], multi_precision=precise), p, [[1.0]] * 16)
        assert p.dtype == "bfloat16" and p.item() == want


def test_moments_of_low_precision_parameters_are_float32():
    p = parameter(dtype="bfloat16")
    adamw = AdamW(0.1, parameters=[p], multi_precision=True, weight_decay=0.0)
    got = descend(adamw, p)
    state = adamw.state_dict()
    assert {t.dtype.name for t in state.values() if hasattr(t, "dtype")} == {"float32"}
    assert list(state["master_weights"]) == [p.name], "where Paddle keeps them"
    want = adamw_by_numpy(np.array([1.0, -2.0, 3.0]), np.array(GRADS), 0.1, 0.0)
    np.testing.assert_allclose(state["master_weights"][p.name].numpy(), want, rtol=1e-6)
    np.testing.assert_allclose(got.astype("float64"), want, rtol=2 ** -8)


# ------------------------------------------------------------------------------------------------------- handles
def test_what_shares_a_parameters_memory_sees_the_step():
    p = parameter()
    seen, turned = p.detach(), p.reshape([3, 1])
    descend(SGD(1.0, parameters=[p]), p, [[1.0, 1.0, 1.0]])
    assert p.tolist() == seen.tolist() == [0.0, -3.0, 2.0] and turned.tolist() == [[0.0], [-3.0], [2.0]]


def test_a_graph_from_before_the_step_still_has_its_values():
    p = parameter([2.0])
    loss = (p * p).sum()
    loss.backward(retain_graph=True)
    sgd = SGD(1.0, parameters=[p])
    sgd.step()
    sgd.clear_grad()
    loss.backward()
    assert p.item() == -2.0 and p.grad.item() == 4.0


def test_the_rate_may_be_set():
    p = parameter([1.0])
    sgd = SGD(0.5, parameters=[p])
    descend(sgd, p, [[1.0]])
    sgd.set_lr(0.25)
    descend(sgd, p, [[1.0]])
    assert sgd.get_lr() == 0.25 and p.item() == 0.25
    assert sgd.scalars()[0].dtype == "float64", "as fine as the parameter it scales"
    scheduled = SGD(paddle.optimizer.lr.StepDecay(0.1, 2), parameters=[p])
    with pytest.raises(RuntimeError, match="set_lr: the learning rate is set by a StepDecay"):
        scheduled.set_lr(0.1)


def test_minimize_is_a_step_with_the_gradients_there_are():
    p, q = parameter([1.0]), parameter([1.0])
    sgd = SGD(0.5, parameters=[p, q])
    loss = (p + q).sum()
    with pytest.raises(RuntimeError, match=r"no parameter has a gradient; call loss.backward\(\) first"):
        sgd.minimize(loss)
    loss.backward()
    _, pairs = sgd.minimize(loss, no_grad_set={q.name})
    assert p.item() == 0.5 and q.item() == 1.0 and [x.name for x, _ in pairs] == [p.name]


def test_clearing():
    p = parameter([1.0])
    sgd = SGD(0.5, parameters=[p])
    p.sum().backward()
    sgd.clear_grad(set_to_zero=True)
    assert p.grad.tolist() == [0.0]
    sgd.zero_grad()
    assert p.grad is None
    sgd.step()
    assert p.item() == 1.0 and int(sgd.scalars()[1]) == 0


def test_numbers_may_be_tensors_and_groups_have_their_own():
    one, other = parameter(), parameter()
    adam = Adam(paddle.to_tensor(0.1), beta1=paddle.to_tensor([0.9]), epsilon=1e-5, parameters=[
        {"params": [one]}, {"params": [other], "beta1": 0.5, "beta2": paddle.to_tensor(0.75)}])
    for g in GRADS:
        ((one + other) * paddle.to_tensor(np.array(g))).sum().backward()
        adam.step()
        adam.clear_grad()
    start, grads, lr = np.array([1.0, -2.0, 3.0]), np.array(GRADS), float(np.float32(0.1))
    np.testing.assert_allclose(one.numpy(), adamw_by_numpy(start, grads, lr, 0.0, np.float32(0.9), 0.999, 1e-5),
                               rtol=1e-6)
    np.testing.assert_allclose(other.numpy(), adamw_by_numpy(start, grads, lr, 0.0, 0.5, 0.75, 1e-5), rtol=1e-6)


def test_gradients_may_be_rescaled():
    """As Paddle's documentation has it: before they meet the velocity (in dynamic mode 3.3.1 leaves it out)."""
    p = parameter([1.0])
    momentum = Momentum(0.5, 0.5, [p], weight_decay=0.25, rescale_grad=0.5)
    assert descend(momentum, p, [[4.0], [4.0]]).item() == -0.125 - 0.5 * (0.5 * 2.25 + 2 - 0.25 * 0.125)


def test_gradients_by_hand():
    """`backward`, `append_regularization_ops` and `apply_gradients`, one after the other, are a step."""
    p, own = parameter([1.0]), parameter([1.0], regularizer=L1Decay(0.5))
    sgd = SGD(0.5, parameters=[p, own])
    pairs = sgd.backward((p + own).sum())
    assert [(x.name, g.item()) for x, g in pairs] == [(p.name, 1.0), (own.name, 1.0)]
    pairs = sgd.append_regularization_ops(pairs, L2Decay(0.25))
    assert [g.item() for _, g in pairs] == [1.25, 1.5]
    sgd.apply_gradients(pairs[:1])
    assert p.item() == 1 - 0.5 * 1.25 and own.item() == 1.0


@pytest.mark.parametrize("make", [
    lambda ps: Momentum(0.1, 0.5, ps, multi_precision=True), lambda ps: Adagrad(0.1, parameters=ps)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_low_precision_steps_are_those_of_float32_rounded(make, dtype):
    low, wide = parameter(dtype=dtype), parameter(dtype="float32")
    np.testing.assert_allclose(descend(make([low]), low).astype("float32"), descend(make([wide]), wide),
                               rtol=2 ** -8 if dtype == "bfloat16" else 2 ** -11, atol=1e-3)


def test_an_optimizer_of_ones_own():
    """Made of operators, it needs no row."""
    class Signs(paddle.optimizer.Optimizer):
        def rule(self, param, grad, state, lr, step, skip, **attributes):
            return paddle.where(grad > 0, param - lr, param + lr), {}
    p = parameter()
    assert descend(Signs(0.5, [p]), p, GRADS[:1]).tolist() == [0.5, -1.5, 2.5]
    with pytest.raises(NotImplementedError, match="Optimizer: an optimizer names its row, or defines rule"):
        descend(paddle.optimizer.Optimizer(0.5, [p]), p)


def test_what_optimizers_refuse():
    p = parameter()
    for make, said in [
        (lambda: SGD("0.1", [p]), "expected learning_rate to be a number or an LRScheduler, got '0.1'"),
        (lambda: SGD(0.1, p), "expected a list of tensors, or of dicts with 'params', got a Parameter"),
        (lambda: SGD(0.1, {p}), "give sets an order"), (lambda: SGD(0.1, [3]), "expected tensors, got int"),
        (lambda: SGD(0.1, [p, p]), "comes twice"), (lambda: SGD(0.1, [p, {"params": []}]), "got both"),
        (lambda: SGD(0.1, [{"params": [p], "momentum": 1}]), "expected 'params' and any of learning_rate, weight_"),
        (lambda: SGD(0.1, [p], grad_clip=1.0), "expected grad_clip to be one of nn.ClipGradBy"),
        (lambda: SGD(0.1, [p], weight_decay="l2").update([p], [p], [{}], p, p), "expected a number, L1Decay, L2Decay"),
        (lambda: SGD(0.1).step(), r"expected parameters, got none; pass parameters=model.parameters\(\)"),
        (lambda: Adam(0.1, beta1=1.0), r"expected betas in \[0, 1\)"),
        (lambda: Adam(0.1, beta1="x"), "Adam: expected beta1 to be a number, got 'x'"),
        (lambda: Adam(0.1, parameters=[{"params": [p], "beta2": 2}]), r"expected betas in \[0, 1\).*beta2=2.0"),
        (lambda: AdamW(weight_decay=L2Decay(0.1)), "AdamW: expected weight_decay to be a number"),
        (lambda: RMSProp(0.1, rho=1.5), r"RMSProp: expected rho in \[0, 1\)"),
        (lambda: Rprop(0.1, learning_rate_range=(0.2, 1)), "got a rate of 0.1 and a range 0.2 .. 1.0"),
        (lambda: Rprop(0.1, etas=(1, 2)), "etas"), (lambda: ASGD(0.1, batch_num=0), "ASGD: expected batch_num"),
        (lambda: AdamW(use_lowprecision_moment=True), "use_lowprecision_moment is not supported")]:
        with pytest.raises((TypeError, ValueError), match=said):
            make()
