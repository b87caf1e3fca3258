"""examples/mnist_cnn.py: a convolutional network learns to read."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import minipd as paddle

spec = importlib.util.spec_from_file_location(
    "mnist_cnn", Path(__file__).resolve().parent.parent / "examples" / "mnist_cnn.py")
mnist = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mnist)


def test_digits_are_drawn_the_same_every_time_and_no_two_alike():
    a, b, other = mnist.Digits(40, seed=3), mnist.Digits(40, seed=3), mnist.Digits(40, seed=4)
    assert a.images.shape == (40, 1, 28, 28) and a.images.dtype == np.float32
    np.testing.assert_array_equal(a.images, b.images)
    assert not np.array_equal(a.images, other.images)
    assert len(np.unique(a.images.reshape(40, -1), axis=0)) == 40
    assert set(mnist.Digits(200, seed=0).labels) == set(range(10))


def test_a_one_is_a_line_and_an_eight_has_two_holes():
    rng = np.random.default_rng(0)
    ink = {digit: (mnist.drawn(digit, 50, rng) > 0.5).mean() for digit in (1, 8)}
    assert 0.02 < ink[1] < ink[8] < 0.35


def test_a_few_steps_lower_the_loss():
    paddle.seed(0)
    model, loader = mnist.LeNet(), mnist.DataLoader(mnist.Digits(128, seed=0), batch_size=32, shuffle=True)
    assert model(paddle.zeros([3, 1, 28, 28])).shape == [3, 10]
    optimizer = paddle.optimizer.Adam(2e-3, parameters=model.parameters())
    losses = [mnist.train(model, loader, optimizer) for _ in range(4)]
    assert losses[-1] < 0.8 * losses[0]
    assert mnist.accuracy(model, loader) > 0.3


@pytest.mark.long
def test_the_example_reads_97_of_100(capsys):
    assert mnist.main([]) > 0.97
    assert "epoch 2: loss" in capsys.readouterr().out
