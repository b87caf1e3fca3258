"""What is called when, and what the callbacks that come along do.  The lines are those that Paddle 3.3.1 prints."""

import re

import numpy as np
import pytest

import minipd as paddle
from minipd import nn
from minipd.callbacks import Callback, EarlyStopping, LRScheduler, ProgBarLogger, ReduceLROnPlateau
from minipd.hapi.callbacks.monitor import Monitor
from tests.hapi.test_model import Points, prepared


class Log(Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args: self.seen.append((name[3:], *(a for a in args if isinstance(a, int)),
                                                   *(sorted(a) for a in args if isinstance(a, dict))))
        return super().__getattribute__(name)


def test_the_moments_and_their_order():
    log, model = Log(), prepared(paddle.metric.Accuracy())
    model.fit(Points(5), Points(3), batch_size=4, epochs=2, verbose=0, callbacks=log, shuffle=False, eval_freq=2)
    known = ["acc", "batch_size", "loss", "step"]
    one_epoch = [("train_batch_begin", 0, []), ("train_batch_end", 0, known),
                 ("train_batch_begin", 1, known), ("train_batch_end", 1, known)]
    assert log.seen == [
        ("train_begin",), ("epoch_begin", 0), *one_epoch, ("epoch_end", 0, known),
        ("eval_begin", ["metrics", "steps"]), ("eval_batch_begin", 0, []), ("eval_batch_end", 0, known),
        ("eval_end", known),
        ("epoch_begin", 1), *one_epoch, ("epoch_end", 1, known), ("train_end", known)]
    assert log.params == {"verbose": 0, "metrics": ["loss", "acc"], "epochs": 2, "steps": 2, "batch_size": 4}
    assert log.model is model
    log.seen.clear()
    model.predict(Points(3), batch_size=2, verbose=0, callbacks=[log])
    assert [moment for moment, *_ in log.seen] == ["predict_begin", *["predict_batch_begin", "predict_batch_end"] * 2,
                                                   "predict_end"]


def printed(capsys):
    """What was printed, without times and folders."""
    text = re.sub(r"\d+(ms|us|s)/step", "TIME", capsys.readouterr().out)
    text = re.sub(" +\n", "\n", text)
    return re.sub(r"ETA: \d+s", "ETA", re.sub(r"at \S*/", "at ", text))


def test_lines(capsys, tmp_path):
    model = prepared(paddle.metric.Accuracy((1, 2)))
    model.fit(Points(10), Points(6), batch_size=4, epochs=1, verbose=2, shuffle=False, log_freq=2,
              save_dir=str(tmp_path))
    lines = re.sub(r"\d\.\d{4}", "N", printed(capsys)).splitlines()
    assert lines == [
        "The loss value printed in the log is the current step, and the metric is the average value of previous "
        "steps.",
        "Epoch 1/1",
        "step 2/3 - loss: N - acc_top1: N - acc_top2: N - TIME",
        "step 3/3 - loss: N - acc_top1: N - acc_top2: N - TIME",
        "save checkpoint at 0",
        "Eval begin...",
        "step 2/2 - loss: N - acc_top1: N - acc_top2: N - TIME",
        "Eval samples: 6",
        "save checkpoint at final"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.pdopt", "0.pdparams", "final.pdopt", "final.pdparams"]


def test_a_bar(capsys):
    model = prepared()
    model.predict(Points(6), batch_size=4)
    assert printed(capsys) == ("Predict begin...\n\rstep 1/2 [==============>...............] - ETA - TIME"
                               "\rstep 2/2 [==============================] - TIME\nPredict samples: 6\n")
    model.fit(iter([(np.ones((2, 4), "float32"), np.ones((2, 1), "int64"))] * 3), verbose=2, log_freq=2)
    assert re.findall("step .", printed(capsys)) == ["step 2", "step 3"], "nobody knows how many there are"


class Given(Callback):
    """Lets the evaluations say what they are told to."""

    def __init__(self, *losses):
        super().__init__()
        self.losses = list(losses)

    def on_eval_begin(self, logs=None):
        loss = paddle.to_tensor(self.losses.pop(0))
        self.model._loss = lambda out, label: out.sum() * 0 + loss


def evaluated(losses, *callbacks, **kwargs):
    model = prepared(rate=0.1)
    given = Given(*losses)
    model.fit(Points(4), Points(4), batch_size=4, epochs=len(losses), verbose=0, callbacks=[given, *callbacks],
              **kwargs)
    return model, len(losses) - len(given.losses)


def test_early_stopping(capsys, tmp_path):
    _, n = evaluated([3.0, 2.0, 2.5, 1.95, 2.1, 1.0], EarlyStopping(patience=2, min_delta=0.1), save_dir=str(tmp_path))
    assert n == 4, "1.95 is not 0.1 better than 2.0"
    assert "Epoch 4: Early stopping.\nBest checkpoint has been saved at best_model" in printed(capsys)
    assert (tmp_path / "best_model.pdparams").exists()
    assert evaluated([3.0, 2.0, 1.0], EarlyStopping(patience=1))[1] == 3
    assert evaluated([3.0, 2.0, 1.0], EarlyStopping(patience=1, baseline=2.5, verbose=0))[1] == 1
    with pytest.warns(UserWarning, match=r"EarlyStopping: the evaluation gives no 'acc'; it gives \['batch_size', "):
        evaluated([1.0], EarlyStopping("acc"))


def test_reduce_the_rate_on_a_plateau(capsys):
    model, _ = evaluated([3.0, 3.0, 3.0, 3.0, 3.0], ReduceLROnPlateau(patience=2, factor=0.5))
    assert model._optimizer.get_lr() == pytest.approx(0.025)
    assert printed(capsys).startswith("Epoch 3: ReduceLROnPlateau reducing learning rate to 0.05.\nEpoch 5: ")
    model, _ = evaluated([3.0] * 5, ReduceLROnPlateau(patience=1, cooldown=2, min_lr=0.02, verbose=0))
    assert model._optimizer.get_lr() == pytest.approx(0.02)
    with pytest.raises(ValueError, match="expected a factor below 1.0, got 1.5"):
        ReduceLROnPlateau(factor=1.5)


def test_the_better_direction():
    assert Monitor("x", "acc", "auto", 0).up and not Monitor("x", "loss", "auto", 0).up
    m = Monitor("x", "acc", "max", 0.5)
    assert [m.better(v) for v in (1.0, 1.4, 1.6)] == [True, False, True]
    with pytest.raises(ValueError, match="EarlyStopping: expected mode auto, min or max, got 'up'"):
        EarlyStopping(mode="up")


@pytest.mark.parametrize("callbacks, steps", [([], 4), ([LRScheduler(by_step=False, by_epoch=True)], 2)])
def test_a_schedule_steps(callbacks, steps):
    model = paddle.Model(nn.Linear(4, 3))
    schedule = paddle.optimizer.lr.StepDecay(0.1, 1)
    model.prepare(paddle.optimizer.SGD(schedule, parameters=model.parameters()), nn.CrossEntropyLoss())
    model.fit(Points(10), batch_size=5, epochs=2, verbose=0, callbacks=callbacks)
    assert schedule.last_epoch == steps
    with pytest.raises(ValueError, match="expected by_step or by_epoch, got both"):
        LRScheduler(by_epoch=True)


def test_ones_own_logger_takes_the_place(capsys):
    prepared().fit(Points(4), batch_size=4, verbose=2, callbacks=[ProgBarLogger(verbose=0)])
    assert capsys.readouterr().out == ""
