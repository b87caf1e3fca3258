"""Learning-rate schedules: the values are those that PaddlePaddle 3.3.1 gives, 12 digits of each."""

import numpy as np
import pytest

import minipd as paddle
from minipd.optimizer import lr

BY_PADDLE = [
    ("CosineAnnealingDecay(0.5, T_max=4, eta_min=0.1)",
     [0.5, 0.441421356237, 0.3, 0.158578643763, 0.1, 0.158578643763, 0.3, 0.441421356237, 0.5, 0.441421356237]),
    ("LinearWarmup(0.5, warmup_steps=3, start_lr=0.1, end_lr=0.5)",
     [0.1, 0.233333333333, 0.366666666667, 0.5, 0.5, 0.5]),
    ("LinearWarmup(lr.CosineAnnealingDecay(0.5, T_max=4), warmup_steps=3, start_lr=0.0, end_lr=0.5)",
     [0.0, 0.166666666667, 0.333333333333, 0.5, 0.426776695297, 0.25, 0.0732233047034, 0.0, 0.0732233047034, 0.25]),
    ("LinearWarmup(lr.StepDecay(0.5, 2), warmup_steps=2, start_lr=0.0, end_lr=0.5)",
     [0.0, 0.25, 0.5, 0.5, 0.05, 0.05, 0.005]),
    ("NoamDecay(d_model=64, warmup_steps=3, learning_rate=2.0)",
     [0.0, 0.0481125224325, 0.0962250448649, 0.144337567297, 0.125, 0.111803398875, 0.102062072616]),
    ("StepDecay(0.5, step_size=2, gamma=0.3)", [0.5, 0.5, 0.15, 0.15, 0.045, 0.045, 0.0135]),
    ("LambdaDecay(0.5, lambda t: 0.9 ** t)", [0.5, 0.45, 0.405, 0.3645, 0.32805]),
    ("PolynomialDecay(0.5, decay_steps=4, end_lr=0.1, power=2.0)",
     [0.5, 0.325, 0.2, 0.125, 0.1, 0.1, 0.1, 0.1]),
    ("PolynomialDecay(0.5, decay_steps=4, end_lr=0.1, power=2.0, cycle=True)",
     [0.5, 0.325, 0.2, 0.125, 0.1, 0.15625, 0.125, 0.10625, 0.1, 0.125, 0.111111111111, 0.102777777778]),
    ("PiecewiseDecay([2, 4], [0.5, 0.2, 0.1])", [0.5, 0.5, 0.2, 0.2, 0.1, 0.1, 0.1]),
    ("NaturalExpDecay(0.5, gamma=0.3)", [0.5, 0.370409110341, 0.274405818047, 0.20328482987]),
    ("InverseTimeDecay(0.5, gamma=0.3)", [0.5, 0.384615384615, 0.3125, 0.263157894737]),
    ("ExponentialDecay(0.5, gamma=0.3)", [0.5, 0.15, 0.045, 0.0135]),
    ("MultiStepDecay(0.5, [2, 4], gamma=0.3)", [0.5, 0.5, 0.15, 0.15, 0.045, 0.045, 0.045]),
]


def make(text):
    return eval(text if text.startswith("lr.") else f"lr.{text}", {"lr": lr})


@pytest.mark.parametrize("text,values", BY_PADDLE, ids=[text for text, _ in BY_PADDLE])
def test_values(text, values):
    schedule, got = make(text), []
    for _ in values:
        got.append(schedule())
        schedule.step()
    np.testing.assert_allclose(got, values, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("text,values", BY_PADDLE, ids=[text for text, _ in BY_PADDLE])
def test_a_saved_schedule_goes_on_where_it_was(text, values):
    one, other = make(text), make(text)
    for _ in range(3):
        one.step()
    other.set_state_dict(one.state_dict())
    for _ in range(3):
        assert other() == one() and other.last_epoch == one.last_epoch
        one.step()
        other.step()


def test_a_step_may_be_named():
    schedule = lr.StepDecay(0.5, 2)
    schedule.step(4)
    assert schedule() == pytest.approx(0.005) and schedule.last_epoch == 4


def test_a_state_of_another_schedule_is_refused():
    with pytest.raises(RuntimeError, match=r"state of LinearWarmup: expected the entries \['LinearWarmup_LR', "
                                           r"'last_epoch', 'last_lr'\], got \['last_epoch', 'last_lr'\]"):
        lr.LinearWarmup(lr.StepDecay(0.5, 2), 1, 0.0, 0.5).set_state_dict(lr.StepDecay(0.5, 2).state_dict())


@pytest.mark.parametrize("text,said", [
    ("LambdaDecay(0.5, 3)", "lr_lambda to be a function"), ("StepDecay('a', 2)", "learning_rate to be a number"),
    ("StepDecay(-1.0, 2)", "a learning_rate >= 0"), ("StepDecay(1.0, 0)", "step_size > 0"),
    ("CosineAnnealingDecay(1.0, 0)", "T_max > 0"), ("PolynomialDecay(1.0, 0)", "decay_steps > 0"),
    ("MultiStepDecay(1.0, [4, 2])", "increasing milestones"), ("PiecewiseDecay([1], [1.0])", "one value more"),
    ("LinearWarmup('a', 1, 0.0, 1.0)", "a number or a schedule"), ("NoamDecay(0, 1)", "d_model > 0"),
    ("LinearWarmup(1.0, 1, 1.0, 0.0)", "start_lr <= end_lr"), ("LRScheduler(0.1)", r"defines get_lr\(\)")])
def test_what_schedules_refuse(text, said):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=said):
        make(text)


def test_verbose(capsys):
    lr.ExponentialDecay(0.5, 0.1, verbose=True)
    assert capsys.readouterr().out == "Epoch 0: ExponentialDecay set learning rate to 0.5.\n"


def test_the_tensor_that_programs_read_follows_the_schedule():
    """One handle, the whole time: a compiled step has it as an input and never calls get_lr."""
    schedule = lr.LinearWarmup(lr.StepDecay(0.5, 1), 2, 0.0, 0.5)
    sgd = paddle.optimizer.SGD(schedule, parameters=paddle.nn.Linear(1, 1).parameters())
    rate, _ = sgd.scalars()
    seen = []
    for _ in range(4):
        seen.append(rate.item())
        schedule.step()
    assert seen == [0.0, 0.25, 0.5, pytest.approx(0.05)] and sgd.scalars()[0] is rate
    assert rate.dtype == "float32" and rate.shape == []
    other = lr.StepDecay(0.125, 1)
    sgd.set_lr_scheduler(other)
    schedule.step()
    assert rate.item() == sgd.get_lr() == 0.125
