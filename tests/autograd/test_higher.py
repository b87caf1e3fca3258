"""Second and third derivatives, against formulas and against finite differences in float64."""

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F

RNG = np.random.default_rng(0)


def leaf(array):
    return paddle.to_tensor(np.asarray(array, float), stop_gradient=False)


@pytest.mark.parametrize("f, derivatives", [
    (paddle.sin, [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)]),
    (paddle.exp, [np.exp] * 3),
    (lambda x: x**3, [lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x]),
    (lambda x: x * x * x, [lambda x: 3 * x**2, lambda x: 6 * x, lambda x: 6 + 0 * x]),
    (paddle.tanh, [lambda x: 1 - np.tanh(x) ** 2, lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2),
                   lambda x: (1 - np.tanh(x) ** 2) * (6 * np.tanh(x) ** 2 - 2)]),
    (lambda x: 1.0 / x, [lambda x: -1 / x**2, lambda x: 2 / x**3, lambda x: -6 / x**4]),
    (lambda x: paddle.log(x * x), [lambda x: 2 / x, lambda x: -2 / x**2, lambda x: 4 / x**3]),
])
def test_three_derivatives(f, derivatives):
    values = np.array([0.3, -0.7, 1.9])
    x = leaf(values)
    y = f(x)
    for n, want in enumerate(derivatives):
        (y,) = paddle.grad(y, x, create_graph=n < 2)
        np.testing.assert_allclose(y.numpy(), want(values), rtol=1e-12)
    assert x.grad is None


def gradient_against_differences(f, *arrays, eps=1e-6):
    """The gradient of the scalar f(*tensors) by the tape, against central differences."""
    xs = [leaf(a) for a in arrays]
    f(*xs).backward()
    for i, (x, a) in enumerate(zip(xs, arrays, strict=True)):
        want = np.zeros_like(a)
        for at in np.ndindex(a.shape):
            up, down = [b.copy() for b in arrays], [b.copy() for b in arrays]
            up[i][at] += eps
            down[i][at] -= eps
            want[at] = (f(*map(leaf, up)).item() - f(*map(leaf, down)).item()) / (2 * eps)
        got = np.zeros_like(a) if x.grad is None else x.grad.numpy()
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def squared_gradient(f):
    """A function whose gradient needs the second derivatives of f: sum of (df/dx * weights)^2 over all inputs."""
    def penalty(*xs):
        got = paddle.grad(f(*xs), list(xs), create_graph=True)
        total = 0.0
        for g in got:
            total = total + (g * g * leaf(np.cos(np.arange(g.size)).reshape(g.shape))).sum()
        return total
    return penalty


def classify(logits, labels=((2,), (0,))):
    """Both results of the loss row take part: the loss and the softmax."""
    softmax, loss = F.cross_entropy_with_softmax(logits, paddle.to_tensor(labels)) if hasattr(
        F, "cross_entropy_with_softmax") else paddle.cross_entropy_with_softmax(logits, paddle.to_tensor(labels))
    return (loss * paddle.to_tensor([[2.0], [3.0]], dtype="float64")).sum() + (softmax * softmax * 5.0).sum()


CASES = {
    "matmul": (lambda a, b: (a @ b).tanh().sum(), (3, 4), (4, 2)),
    "matmul, a batch and a matrix": (lambda a, b: ((a @ b) ** 3).sum(), (2, 3, 4), (4, 2)),
    "softmax": (lambda x: (F.softmax(x) ** 2 * leaf([[1.0, -2.0, 3.0]])).sum(), (2, 3)),
    "cross entropy, both results": (classify, (2, 3)),
    "views": (lambda x: (x.reshape([3, 2])[1:, 0] * x[0, ::-1][:2]).exp().sum(), (2, 3)),
    "broadcasting": (lambda a, b: ((a + b) * (a / (b * b + 1.0))).sin().sum(), (2, 1, 3), (4, 1)),
    "mean and max": (lambda x: (x.mean(axis=1) * x.max(axis=1)).exp().sum(), (2, 3)),
    "a written part": (lambda x: _written(x), (2, 3)),
    "concat and split": (lambda a, b: _joined(a, b), (2, 2), (2, 1)),
}


def _written(x):
    y = x * x
    y[0] = y[1].clone() * x[0]
    return (y * y).sum()


def _joined(a, b):
    first, rest = paddle.split(paddle.concat([a, b], axis=1).sin(), [1, 2], axis=1)
    return (first * rest * rest).sum()


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives_against_differences(name):
    f, *shapes = CASES[name]
    arrays = [RNG.normal(size=s) for s in shapes]
    gradient_against_differences(f, *arrays)
    gradient_against_differences(squared_gradient(f), *arrays)


def test_third_derivatives_against_differences():
    f = lambda a, b: ((a @ b).sin() * a.sum()).sum()
    arrays = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    gradient_against_differences(squared_gradient(squared_gradient(f)), *arrays, eps=1e-5)


def test_backward_of_a_penalty_reaches_every_leaf():
    """A gradient penalty: the second pass goes through the first one's graph and the forward one's."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    y = (w * x * x).sum()
    (dx,) = paddle.grad(y, x, create_graph=True)        # 2 w x
    (y + (dx * dx).sum()).backward()                    # w x^2 + 4 w^2 x^2
    np.testing.assert_allclose(x.grad.numpy(), [2 * 3 * 1 + 8 * 9 * 1, 2 * 5 * 2 + 8 * 25 * 2])
    np.testing.assert_allclose(w.grad.numpy(), [1 + 8 * 3 * 1, 4 + 8 * 5 * 4])


def test_the_hessian_row_by_row():
    a = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 4.0]])
    x = leaf([1.0, -2.0, 0.5])
    y = (x @ (paddle.to_tensor(a) @ x)) * 0.5
    (g,) = paddle.grad(y, x, create_graph=True)
    rows = [paddle.grad(g[i], x, retain_graph=True)[0].numpy() for i in range(3)]
    np.testing.assert_allclose(rows, a)


def test_a_gradient_that_does_not_depend_on_the_input():
    """d/dx of a constant gradient: nothing to differentiate, and the error says so."""
    x = leaf([2.0])
    (g,) = paddle.grad(x * 3.0, x, create_graph=True)
    assert g.tolist() == [3.0] and g.stop_gradient
    with pytest.raises(RuntimeError, match="stop_gradient=True"):
        paddle.grad(g, x)
