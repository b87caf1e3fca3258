"""Oracle: the loss sum(g * (x @ y)) is linear in x, so its slope in x[i] is its value at the i-th unit array."""

import numpy as np

import minipd as paddle
from tools.course.checking import check


def gradient(x, y, g, transpose_x=False, transpose_y=False):
    def run():
        a = paddle.to_tensor(np.array(x, "float64"), stop_gradient=False)
        b = paddle.to_tensor(np.array(y, "float64"))
        paddle.matmul(a, b, transpose_x, transpose_y).backward(paddle.to_tensor(np.array(g, "float64")))
        return a.grad.numpy()
    return run


def product(x, y, transpose_x, transpose_y):
    return np.matmul(x.swapaxes(-1, -2) if transpose_x else x, y.swapaxes(-1, -2) if transpose_y else y)


def oracle(x, y, g, transpose_x, transpose_y):
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        unit = np.zeros_like(x)
        unit[i] = 1.0
        out[i] = (g * product(unit, y, transpose_x, transpose_y)).sum()
    return out


def test_a_row_and_a_column():
    check([[3, 4]], gradient([[1, 2]], [[3], [4]], [[1]]), "x = [[1, 2]], y = [[3], [4]], g = [[1]]")


def test_two_by_two():
    check([[1, 3], [2, 4]], gradient([[1, 1], [1, 1]], [[1, 2], [3, 4]], [[1, 0], [0, 1]]),
          "y = [[1, 2], [3, 4]], g = the unit matrix")


def test_every_transposition():
    rng = np.random.default_rng(0)
    for tx in (False, True):
        for ty in (False, True):
            x = rng.integers(-3, 4, (3, 2) if tx else (2, 3)).astype("float64")
            y = rng.integers(-3, 4, (4, 3) if ty else (3, 4)).astype("float64")
            g = rng.integers(-3, 4, (2, 4)).astype("float64")
            check(oracle(x, y, g, tx, ty), gradient(x, y, g, tx, ty),
                  f"x {x.tolist()}, y {y.tolist()}, g {g.tolist()}, transpose_x={tx}, transpose_y={ty}")


def test_a_batch_shares_x():
    """x has no batch dimension, y has one of 2: x was broadcast, so its gradient is a sum over the batch."""
    y = [[[1], [2]], [[10], [20]]]
    check([[11, 22]], gradient([[1, 1]], y, [[[1]], [[1]]]), "x = [[1, 1]], y = [[[1], [2]], [[10], [20]]], g = ones")


def test_batches_at_random():
    rng = np.random.default_rng(1)
    for bx, by in (((2,), ()), ((), (2,)), ((1,), (2,)), ((2, 1), (3,)), ((2, 3), (2, 3))):
        for tx in (False, True):
            for ty in (False, True):
                x = rng.integers(-3, 4, (*bx, *((3, 2) if tx else (2, 3)))).astype("float64")
                y = rng.integers(-3, 4, (*by, *((4, 3) if ty else (3, 4)))).astype("float64")
                g = rng.integers(-3, 4, product(x, y, tx, ty).shape).astype("float64")
                check(oracle(x, y, g, tx, ty), gradient(x, y, g, tx, ty),
                      f"x of shape {x.shape}, y of shape {y.shape}, transpose_x={tx}, transpose_y={ty}")


def test_the_gradient_has_a_gradient():
    """d(x y)/dx = g y^T; of its sum with g = x y, the slope in y is read off by differences of a quadratic."""
    x = paddle.to_tensor([[1.0, 2.0]], "float64", stop_gradient=False)
    y = paddle.to_tensor([[3.0], [4.0]], "float64", stop_gradient=False)
    (dx,) = paddle.grad(paddle.matmul(x, y), x, create_graph=True)
    (dy,) = paddle.grad(dx[0, 0] * dx[0, 0], y)
    check([[6], [0]], dy.numpy(), "d/dy of (dx[0, 0]) ** 2, where dx = y^T = [[3, 4]]")
