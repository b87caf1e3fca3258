"""Oracle: element i of the operand gets the sum of the gradients of all places that it was copied to; the places are
found by broadcasting the operand's element numbers."""

import numpy as np

import minipd as paddle
from tools.course.checking import check


def down(g, target):
    """The gradient g, summed to the shape `target`."""
    return lambda: paddle.reduce_as(paddle.to_tensor(np.array(g, "float64")), paddle.ones(target)).numpy()


def oracle(g, target):
    numbers = np.broadcast_to(np.arange(int(np.prod(target))).reshape(target), g.shape)
    return np.bincount(numbers.ravel(), g.ravel(), int(np.prod(target))).reshape(target)


def test_a_bias():
    check([5, 7, 9], down([[1, 2, 3], [4, 5, 6]], [3]),
          "the gradient [[1, 2, 3], [4, 5, 6]] of an operand of shape [3]")


def test_a_column():
    check([[6], [15]], down([[1, 2, 3], [4, 5, 6]], [2, 1]),
          "the gradient [[1, 2, 3], [4, 5, 6]] of an operand of shape [2, 1]")


def test_a_scalar():
    check(21, down([[1, 2, 3], [4, 5, 6]], []), "the gradient [[1, 2, 3], [4, 5, 6]] of a 0-D operand")


def test_new_and_stretched_dimensions_at_once():
    g = np.arange(1.0, 9.0).reshape(2, 2, 2)        # [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    check([[14], [22]], down(g, [2, 1]), "the gradient [[[1, 2], [3, 4]], [[5, 6], [7, 8]]] of an operand [2, 1]")


def test_nothing_was_stretched():
    check([[1, 2, 3]], down([[1, 2, 3]], [1, 3]), "the gradient [[1, 2, 3]] of an operand of the same shape")
    check([[1, 2], [1, 2]], down([[1, 2], [1, 2]], [2, 2]), "the gradient [[1, 2], [1, 2]] of an operand [2, 2]")


def test_in_a_product():
    x = paddle.to_tensor([[1.0], [2.0]], stop_gradient=False)
    y = paddle.to_tensor([10.0, 20.0, 30.0], stop_gradient=False)
    (x * y).sum().backward()
    check([[60], [60]], x.grad.numpy(), "x.grad of (x * y).sum(), x = [[1], [2]], y = [10, 20, 30]")
    check([3, 3, 3], y.grad.numpy(), "y.grad of (x * y).sum(), x = [[1], [2]], y = [10, 20, 30]")


def test_shapes_at_random():
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = rng.integers(0, 4, rng.integers(0, 5))
        target = [int(d) if rng.random() < 0.5 else 1 for d in shape][int(rng.integers(0, len(shape) + 1)):]
        g = rng.integers(0, 9, shape).astype("float64")
        check(oracle(g, target), down(g, target), f"a gradient of shape {g.shape} of an operand of shape {target}")
