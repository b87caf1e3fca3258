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
    ("MultiplicativeDecay(0.5, lambda t: 0.9 + 0.01 * t)",
     [0.5, 0.455, 0.4186, 0.389298, 0.36594012, 0.347643114, 0.33373738944, 0.323725267757, 0.317250762402,
      0.314078254778, 0.314078254778, 0.317219037325, 0.323563418072]),
    ("CosineAnnealingWarmRestarts(0.5, 3)",
     [0.5, 0.375, 0.125, 0.5, 0.375, 0.125, 0.5, 0.375, 0.125, 0.5, 0.375, 0.125, 0.5]),
    ("CosineAnnealingWarmRestarts(0.5, 2, 2, 0.05)",
     [0.5, 0.275, 0.5, 0.434099025767, 0.275, 0.115900974233, 0.5, 0.482872894815, 0.434099025767, 0.361103772282,
      0.275, 0.188896227718, 0.115900974233]),
    ("CosineAnnealingWarmRestarts(0.5, 1, 3)",
     [0.5, 0.5, 0.375, 0.125, 0.5, 0.484923155196, 0.44151111078, 0.375, 0.293412044417, 0.206587955583, 0.125,
      0.0584888892203, 0.0150768448035]),
    ("LinearLR(0.5, 5)",
     [0.166666666667, 0.233333333333, 0.3, 0.366666666667, 0.433333333333, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
    ("LinearLR(0.5, 5, 0.2, 0.8)",
     [0.1, 0.16, 0.22, 0.28, 0.34, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]),
    ("OneCycleLR(1.0, 12)",
     [0.04, 0.34978965422, 0.879285159122, 0.994415971571, 0.933019400622, 0.811763726439, 0.647412849447,
      0.462688689711, 0.283129824628, 0.133560716679, 0.0346596693653, 0.0001]),
    ("OneCycleLR(1.0, 12, divide_factor=10.0, end_learning_rate=0.01, phase_pct=0.4, anneal_strategy='linear')",
     [0.1, 0.336842105263, 0.573684210526, 0.810526315789, 0.9725, 0.835, 0.6975, 0.56, 0.4225, 0.285, 0.1475, 0.01]),
    ("OneCycleLR(1.0, 12, three_phase=True)",
     [0.04, 0.34978965422, 0.879285159122, 0.945018892314, 0.462142393477, 0.0539479276355, 0.0381561296224,
      0.031245681954, 0.0211300712263, 0.010705251608, 0.00295569933546, 0.0001]),
    ("OneCycleLR(1.0, 12, phase_pct=0.25, three_phase=True, anneal_strategy='linear')",
     [0.04, 0.52, 1.0, 0.52, 0.04, 0.0343, 0.0286, 0.0229, 0.0172, 0.0115, 0.0058, 0.0001]),
    ("CyclicLR(0.1, 1.0, 3)",
     [0.1, 0.4, 0.7, 1.0, 0.7, 0.4, 0.1, 0.4, 0.7, 1.0, 0.7, 0.4, 0.1]),
    ("CyclicLR(0.1, 1.0, 3, 2, 'triangular2')",
     [0.1, 0.4, 0.7, 1.0, 0.55, 0.1, 0.25, 0.4, 0.55, 0.325, 0.1, 0.175, 0.25]),
    ("CyclicLR(0.1, 1.0, 2, 3, 'exp_range', 0.9)",
     [0.1, 0.505, 0.829, 0.5374, 0.29683, 0.1, 0.33914845, 0.53046721, 0.358280326, 0.2162261467, 0.1, 0.241214768241,
      0.354186582833]),
    ("CyclicLR(0.1, 1.0, 2, 3, scale_fn=lambda x: 1 / (1 + x), scale_mode='iterations')",
     [0.1, 0.325, 0.4, 0.25, 0.16, 0.1, 0.164285714286, 0.2125, 0.166666666667, 0.13, 0.1, 0.1375, 0.169230769231]),
    ("CyclicLR(0.1, 1.0, 2, scale_fn=lambda x: 0.5 ** x)",
     [0.1, 0.325, 0.55, 0.325, 0.1, 0.2125, 0.325, 0.2125, 0.1, 0.15625, 0.2125, 0.15625, 0.1]),
]
METRICS = [5, 4, 3.99999, 4, 4.1, 4.2, 3, 3, 3, 3.1, 3.2, 2, 2, 2, 2, 2]
PLATEAUS = [
    ("ReduceOnPlateau(1.0, factor=0.5, patience=1)",
     [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.03125, 0.03125, 0.015625]),
    ("ReduceOnPlateau(1.0, 'max', factor=0.5, patience=2, cooldown=2)",
     [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125]),
    ("ReduceOnPlateau(1.0, factor=0.1, patience=0, threshold=0.5, threshold_mode='abs', min_lr=0.02)",
     [1.0, 1.0, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.02]),
    ("ReduceOnPlateau(1.0, 'max', 0.5, 1, 0.1, 'rel', 1)",
     [1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.0625, 0.0625, 0.0625, 0.03125, 0.03125]),
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


@pytest.mark.parametrize("text,values", PLATEAUS, ids=[text for text, _ in PLATEAUS])
def test_a_plateau(text, values):
    """By numbers and by tensors; halfway on from its state."""
    one, other, got = make(text), make(text), []
    for i, metric in enumerate(METRICS):
        one.step(paddle.to_tensor(float(metric)) if i % 2 else metric)
        got.append(one())
        if i == 7:
            other.set_state_dict(one.state_dict())
        elif i > 7:
            other.step(metric)
            assert other.state_dict() == one.state_dict()
    np.testing.assert_allclose(got, values, rtol=1e-11)


def test_a_schedule_of_ones_own_says_what_its_state_is():
    class Counted(lr.LRScheduler):
        def __init__(self):
            self.seen = 0
            super().__init__(1.0)

        def get_lr(self):
            self.seen += 1
            return self.base_lr / self.seen

        def state_keys(self):
            self.keys = ["seen", "last_epoch", "last_lr"]
    one, other = Counted(), Counted()
    one.step()
    one.step()
    assert one.state_dict() == {"seen": 3, "last_epoch": 2, "last_lr": 1 / 3}
    other.set_state_dict(one.state_dict())
    other.step()
    assert other() == 1 / 4


def test_one_cycle_ends():
    schedule = lr.OneCycleLR(1.0, 3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="OneCycleLR: expected at most 3 steps, as it was made for, got 4"):
        schedule.step()


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
    ("LinearWarmup(1.0, 1, 1.0, 0.0)", "start_lr <= end_lr"), ("LRScheduler(0.1)", r"defines get_lr\(\)"),
    ("CosineAnnealingWarmRestarts(1.0, 0)", "T_0 to be a positive int"), ("OneCycleLR(1.0, 0)", "total_steps > 0"),
    ("OneCycleLR(1.0, 9, phase_pct=0.6, three_phase=True)", "below 0.5 with three phases"),
    ("OneCycleLR(1.0, 9, anneal_strategy='x')", "anneal_strategy 'cos' or 'linear'"),
    ("CyclicLR(0.1, 1.0, 3, mode='x')", "mode to be one of triangular, triangular2, exp_range"),
    ("CyclicLR(0.1, 1.0, 0)", "positive step sizes"), ("LinearLR(0.1, 5, 2.0)", "a start_factor in"),
    ("LinearLR(0.1, 0)", "total_steps > 0"), ("MultiplicativeDecay(0.5, 3)", "lr_lambda to be a function"),
    ("ReduceOnPlateau(1.0, 'x')", "mode 'min' or 'max'"), ("ReduceOnPlateau(1.0, factor=2.0)", "factor < 1"),
    ("ReduceOnPlateau(1.0).step('x')", "expected the metric, a number")])
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
