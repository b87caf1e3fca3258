"""Oracles: numbers worked by hand, and central differences in float64 of a softmax in plain numpy."""

import numpy as np

import minipd as paddle
from tools.course.checking import check


def gradient(x, g, axis=-1):
    def run():
        t = paddle.to_tensor(np.array(x, "float64"), stop_gradient=False)
        paddle.softmax(t, axis).backward(paddle.to_tensor(np.array(g, "float64")))
        return t.grad.numpy()
    return run


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def differences(f, x, step=1e-6):
    """The gradient of the number f(x), element by element."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = step
        out[i] = (f(x + d) - f(x - d)) / (2 * step)
    return out


def test_two_equal_entries():
    check([0.25, -0.25], gradient([0.0, 0.0], [1.0, 0.0]), "x = [0, 0], g = [1, 0]; the softmax is [0.5, 0.5]")


def test_a_gradient_that_is_the_same_everywhere_comes_to_nothing():
    check([0.0, 0.0, 0.0], gradient([0.0, 1.0, 5.0], [2.0, 2.0, 2.0]),
          "x = [0, 1, 5], g = [2, 2, 2]: the softmax always sums to 1, so its sum has no slope")


def test_rows_are_apart():
    check([[0.25, -0.25], [-0.5, 0.5]], gradient([[0.0, 0.0], [3.0, 3.0]], [[1.0, 0.0], [0.0, 2.0]]),
          "x = [[0, 0], [3, 3]], g = [[1, 0], [0, 2]], along the last axis")


def test_the_axis_is_an_attribute():
    check([[0.25, 0.0], [-0.25, 0.0]], gradient([[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], axis=0),
          "x = zeros, g = [[1, 0], [0, 0]], softmax along axis 0")


def test_against_differences():
    rng = np.random.default_rng(0)
    for shape, axis in (((3,), 0), ((2, 4), 1), ((4, 2), 0), ((2, 3, 4), 1)):
        x, g = rng.standard_normal(shape), rng.standard_normal(shape)
        want = differences(lambda v, axis=axis, g=g: (softmax(v, axis) * g).sum(), x)
        check(want, gradient(x, g, axis), f"random numbers of shape {shape}, softmax along axis {axis}", atol=1e-7)


def test_the_gradient_has_a_gradient():
    """At [0, 0]: p0 = 1 / (1 + e^-(x0 - x1)), whose second derivative is 0, so of p0 * p0 it is 2 (p0')^2."""
    x = paddle.to_tensor(np.zeros(2), stop_gradient=False)
    p0 = paddle.softmax(x)[0]
    (first,) = paddle.grad(p0 * p0, x, create_graph=True)
    check([0.25, -0.25], first.numpy(), "the gradient of p0 * p0 at x = [0, 0], p = softmax(x)")
    check([0.125, -0.125], lambda: paddle.grad(first[0], x)[0].numpy(),
          "the second derivative of p0 * p0 at [0, 0] (does the rule use tensors and operators only, so that it can be "
          "recorded itself?)")
