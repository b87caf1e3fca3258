"""Oracle: numpy's running sum of each unit vector says which results an element is in; the gradient adds up theirs."""

import numpy as np

import minipd as paddle
from minipd.ops.scan import Cumsum
from tools.course.checking import check


def gradient(x, g, **attrs):
    def run():
        t = paddle.to_tensor(np.array(x, "float64"), stop_gradient=False)
        Cumsum(t, **attrs).backward(paddle.to_tensor(np.array(g, "float64")))
        return t.grad.numpy()
    return run


def running(x, axis, exclusive=False, reverse=False):
    x = np.flip(x, axis) if reverse else x
    out = np.cumsum(x, axis) - (x if exclusive else 0)
    return np.flip(out, axis) if reverse else out


def oracle(g, **attrs):
    out = np.zeros_like(g)
    for i in np.ndindex(g.shape):
        unit = np.zeros_like(g)
        unit[i] = 1.0
        out[i] = (g * running(unit, **attrs)).sum()
    return out


def test_three_elements():
    check([111, 110, 100], gradient([5, 6, 7], [1, 10, 100], axis=0),
          "the gradient of cumsum([a, b, c]) = [a, a + b, a + b + c], for g = [1, 10, 100]")


def test_summed_from_the_end():
    check([1, 11, 111], gradient([5, 6, 7], [1, 10, 100], axis=0, reverse=True),
          "reverse=True: [a + b + c, b + c, c], for g = [1, 10, 100]")


def test_without_the_element_itself():
    check([110, 100, 0], gradient([5, 6, 7], [1, 10, 100], axis=0, exclusive=True),
          "exclusive=True: [0, a, a + b], for g = [1, 10, 100]")
    check([0, 1, 11], gradient([5, 6, 7], [1, 10, 100], axis=0, exclusive=True, reverse=True),
          "exclusive=True, reverse=True: [b + c, c, 0], for g = [1, 10, 100]")


def test_along_columns():
    check([[101, 1010], [100, 1000]], gradient([[1, 2], [3, 4]], [[1, 10], [100, 1000]], axis=0),
          "axis=0 of [[a, b], [c, d]]: [[a, b], [a + c, b + d]], for g = [[1, 10], [100, 1000]]")


def test_the_public_function():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    paddle.cumsum(x).backward(paddle.to_tensor([1.0, 10.0, 100.0, 1000.0]))
    check([[1111, 1110], [1100, 1000]], x.grad.numpy(),
          "paddle.cumsum([[1, 2], [3, 4]]), which flattens, for g = [1, 10, 100, 1000]")


def test_at_random():
    rng = np.random.default_rng(0)
    for shape, axis in (((1,), 0), ((4,), 0), ((2, 3), 1), ((3, 2, 2), 1), ((0, 2), 0)):
        for exclusive in (False, True):
            for reverse in (False, True):
                g = rng.integers(-5, 6, shape).astype("float64")
                attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
                check(oracle(g, **attrs), gradient(np.ones(shape), g, **attrs),
                      f"g = {g.tolist()}, axis={axis}, exclusive={exclusive}, reverse={reverse}")


def test_the_gradient_has_a_gradient():
    """dx is linear in g: of w . dx, the gradient by g is the running sum of w."""
    x = paddle.to_tensor([1.0, 2.0, 3.0], "float64", stop_gradient=False)
    g = paddle.to_tensor([1.0, 1.0, 1.0], "float64", stop_gradient=False)
    (dx,) = paddle.grad(paddle.cumsum(x), x, g, create_graph=True)
    check([1, 11, 111], lambda: paddle.grad(dx, g, paddle.to_tensor([1.0, 10.0, 100.0], "float64"))[0],
          "the gradient of 1 dx[0] + 10 dx[1] + 100 dx[2] by g (does the rule use operators on tensors only, so that "
          "it can be recorded itself?)")
