"""examples/static_training.py: a network written in static mode trains as the same one does eagerly."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle
from minipd import nn, static
from minipd.nn import functional as F

spec = importlib.util.spec_from_file_location(
    "static_training", Path(__file__).resolve().parent.parent / "examples" / "static_training.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)


def test_strokes_are_of_four_kinds():
    images, kinds = example.strokes(200, np.random.default_rng(0))
    assert images.shape == (200, 1, 12, 12) and images.dtype == np.float32 and set(kinds.ravel()) == {0, 1, 2, 3}
    level = images[kinds[:, 0] == 0].mean(axis=(0, 1, 3))                # mean by rows: ink around the middle
    assert level[4:8].min() > 0.25 > level[[0, 11]].max()


class Eager(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(1, 8, 3, bias_attr=False), nn.BatchNorm2D(8)
        self.fc = nn.Linear(200, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), kernel_size=2)
        return self.fc(F.dropout(x, 0.2, training=self.training).flatten(1))


def test_losses_are_those_of_eager_training():
    batches = [example.strokes(16, np.random.default_rng(n)) for n in range(5)]
    model = Eager()
    first = [p.numpy() for p in model.parameters()]
    schedule = paddle.optimizer.lr.StepDecay(0.02, step_size=2, gamma=0.5)
    optimizer = paddle.optimizer.Adam(schedule, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0),
                                      weight_decay=paddle.regularizer.L2Decay(1e-4))
    paddle.seed(7)
    want = []
    for x, y in batches:
        loss = F.cross_entropy(model(paddle.to_tensor(x)), paddle.to_tensor(y))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
        want.append(loss.item())
    model.eval()
    want_scores = model(paddle.to_tensor(batches[0][0])).numpy()

    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()):
            net, exe = example.build(), static.Executor()
            exe.run(net.startup)
            net.schedule.step_size = 2
            net.main.set_state_dict(dict(zip([p.name for p in net.main.trainable_parameters()], first, strict=True)))
            paddle.seed(7)
            got = []
            for x, y in batches:
                got.append(exe.run(net.main, feed={"image": x, "label": y}, fetch_list=[net.loss])[0].item())
                net.schedule.step()
            scores, = exe.run(net.test, feed={"image": batches[0][0]}, fetch_list=[net.scores])
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(got, want, rtol=1e-4)
    np.testing.assert_allclose(scores, want_scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("steps, least", [(60, 0.9)])
def test_what_was_trained_saved_and_loaded_tells_strokes_apart(capsys, steps, least):
    assert example.main(["--steps", str(steps)]) > least
    assert "step 60: loss" in capsys.readouterr().out and paddle.in_dynamic_mode()
