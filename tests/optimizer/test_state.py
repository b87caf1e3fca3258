"""The state of an optimizer: what it is called, and going on from it."""

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.framework.context import RankContext
from minipd.framework.rank import enter, leave
from minipd.optimizer import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    lr,
)


def trained(steps, state=None, params=None, schedule=False, late=0, optimizer=AdamW):
    """A model after `steps` steps, in a rank context of its own, from a state or from the start."""
    token = enter(RankContext())
    try:
        paddle.seed(1)
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        if params:
            model.set_state_dict(params)
        rate = lr.CosineAnnealingDecay(0.1, 10) if schedule else 0.1
        opt = optimizer(rate, parameters=model.parameters())
        if state:
            opt.set_state_dict(state)
        first = int(opt.scalars()[1])
        for i in range(first, first + steps):
            x = paddle.to_tensor(np.random.default_rng(i).normal(size=(4, 3)).astype("float32"))
            h = model[0](x)
            (model[1](h) if i >= late else h).sum().backward()
            opt.step()
            opt.clear_grad()
            if schedule:
                rate.step()
        return model, opt
    finally:
        leave(token)


def numpy_of(state):
    return {k: v.numpy() if hasattr(v, "numpy") else v for k, v in state.items()}


def assert_same(a, b):
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_equal(a[name], b[name], err_msg=name)


def test_names_are_paddles():
    """linear_0.w_0_moment1_0 and LR_Scheduler are called so in Paddle too."""
    _, opt = trained(2, schedule=True)
    state = opt.state_dict()
    assert sorted(state) == sorted(
        [f"linear_{i}.{p}_0_{m}_0" for i in (0, 1) for p in "wb"
         for m in ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")]
        + ["step", "LR_Scheduler"])
    assert state["step"] == 2 and state["LR_Scheduler"]["last_epoch"] == 2
    assert state["linear_0.w_0_moment1_0"].shape == [3, 2]


ALL = [SGD, Momentum, Adagrad, Adadelta, RMSProp, Adam, AdamW, Adamax, NAdam, RAdam, Lamb, ASGD]


@pytest.mark.parametrize("optimizer", ALL)
@pytest.mark.parametrize("schedule,late", [(False, 0), (True, 3), (True, 9)])
def test_resuming_is_bitwise(optimizer, schedule, late, tmp_path):
    """Also where some parameters had no gradient yet, or never; and through a file."""
    straight = trained(6, schedule=schedule, late=late, optimizer=optimizer)
    model, opt = trained(2, schedule=schedule, late=late, optimizer=optimizer)
    paddle.save({"model": model.state_dict(), "optimizer": opt.state_dict()}, tmp_path / "at_2")
    saved = paddle.load(tmp_path / "at_2")
    model, opt = trained(4, saved["optimizer"], saved["model"], schedule, late, optimizer)
    assert_same(numpy_of(model.state_dict()), numpy_of(straight[0].state_dict()))
    assert_same(numpy_of(dict(sorted(opt.state_dict().items()))),
                numpy_of(dict(sorted(straight[1].state_dict().items()))))


@pytest.mark.parametrize("optimizer", ALL)
def test_a_state_that_counts_as_paddle_does_is_as_good(optimizer):
    """Without `step` and `missed_steps`, which Paddle does not write, the powers of the betas tell the counts."""
    model, opt = trained(3, late=2, optimizer=optimizer)
    state, params = opt.state_dict(), model.state_dict()
    written = {k: v for k, v in state.items() if k not in ("step", "missed_steps")}
    (one, a), (other, b) = (trained(0, s, params, optimizer=optimizer) for s in (state, written))
    for m, o in ((one, a), (other, b)):
        for _ in range(2):
            m(paddle.ones([1, 3])).sum().backward()
            o.step()
            o.clear_grad()
    assert_same(numpy_of(one.state_dict()), numpy_of(other.state_dict()))
    if a.powers:
        assert int(b.scalars()[1]) == 5 and a.state_dict()["missed_steps"] == b.state_dict()["missed_steps"]


def test_parameters_that_missed_steps_are_recorded():
    _, opt = trained(3, late=2)
    assert opt.state_dict()["missed_steps"] == {"linear_1.w_0": 2, "linear_1.b_0": 2}


def test_states_that_do_not_fit():
    state = numpy_of(trained(1)[1].state_dict())

    def loading(change):
        return pytest.raises((ValueError, RuntimeError), match=change)
    with loading(r"missing \(1\): linear_0.w_0_moment1_0.*Nothing was loaded"):
        trained(0, {k: v for k, v in state.items() if k != "linear_0.w_0_moment1_0"})
    with loading(r"missing \(2\): linear_1.b_0_moment1_0, linear_1.b_0_moment2_0"):
        trained(0, {k: v for k, v in state.items() if not k.startswith("linear_1.b_0")})
    with loading(r"state of AdamW \(entries are named after the parameters, whose generated names count the layers "
                 r"made before; .*unexpected \(1\): linear_7.w_0_moment1_0"):
        trained(0, {**state, "linear_7.w_0_moment1_0": np.zeros((3, 2), "float32")})
    with loading(r"linear_0.w_0_moment1_0: expected f32\[3, 2\], got f32\[2\]"):
        trained(0, {**state, "linear_0.w_0_moment1_0": np.zeros(2, "float32")})
    with loading("expected no entry 'LR_Scheduler', because the learning rate is a number"):
        trained(0, {**state, "LR_Scheduler": {}})
    with loading("expected an entry 'LR_Scheduler', because the learning rate is a schedule"):
        trained(0, state, schedule=True)
    with loading(r"unexpected \(2\): weight, bias.  Nothing was loaded"):
        trained(0, nn.Linear(1, 1).state_dict())
    with loading("it belongs to another schedule"):
        trained(0, {**state, "LR_Scheduler": {"last_epoch": 1}}, schedule=True)


def test_a_refused_state_changes_nothing():
    _, opt = trained(2, schedule=True)
    before = numpy_of(opt.state_dict())
    state = dict(numpy_of(trained(3, schedule=True)[1].state_dict()))
    del state["linear_0.b_0_moment1_0"]
    with pytest.raises(ValueError, match="missing"):
        opt.set_state_dict(state)
    assert_same(numpy_of(opt.state_dict()), before)


def test_the_tensors_of_the_state_are_the_same_ever_after():
    """Handles that a traced step has bound stay those that the eager step rebinds."""
    model, opt = trained(1)
    handles = {k: v for k, v in opt.state_dict().items() if "moment" in k}
    before = handles["linear_0.w_0_moment1_0"].numpy()
    model(paddle.ones([1, 3])).sum().backward()
    opt.step()
    assert all(opt.state_dict()[k] is v and v.persistable for k, v in handles.items())
    assert (handles["linear_0.w_0_moment1_0"].numpy() != before).any()


def test_the_core_changes_nothing():
    model, opt = trained(1)
    model(paddle.ones([1, 3])).sum().backward()
    params = model.parameters()
    lr_, step = opt.scalars()
    state = [opt.state_of(p) for p in params]
    before = [p.numpy() for p in params], numpy_of(opt.state_dict())
    new_params, new_state = opt.update(params, [p.grad for p in params], state, lr_, step + 1)
    for p, old in zip(params, before[0], strict=True):
        np.testing.assert_array_equal(p.numpy(), old)
    assert_same(numpy_of(opt.state_dict()), before[1])
    opt.step()
    for p, new, kept in zip(params, new_params, new_state, strict=True):
        np.testing.assert_array_equal(p.numpy(), new.numpy())
        for name, tensor in kept.items():
            np.testing.assert_array_equal(opt.state_of(p)[name].numpy(), tensor.numpy())


def test_state_can_be_made_before_the_first_step():
    token = enter(RankContext())
    try:
        model = nn.Linear(2, 2)
        opt = AdamW(0.1, parameters=model.parameters())
        opt.prepare()
        assert opt.state_dict()["linear_0.w_0_moment2_0"].numpy().sum() == 0 and opt.state_dict()["step"] == 0
    finally:
        leave(token)
