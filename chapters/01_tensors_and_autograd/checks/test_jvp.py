"""Oracles: derivatives worked by hand, and central differences of the same function in plain numpy."""

import numpy as np

import minipd as paddle
from minipd.incubate.autograd import jvp
from tools.course.checking import check


def tensor(data):
    return paddle.to_tensor(np.array(data, "float64"))


def along(func, xs, v=None):
    return lambda: jvp(func, xs, v)[1]


def test_squares():
    check([2.0, 3.0], along(lambda x: x * x, tensor([1, 3]), tensor([1, 0.5])),
          "jvp of x * x at x = [1, 3] along v = [1, 0.5]: 2 x v")


def test_the_result_comes_along():
    check([1.0, 9.0], lambda: jvp(lambda x: x * x, tensor([1, 3]), tensor([1, 0.5]))[0],
          "the first of the two results, x * x at [1, 3]")


def test_more_results_than_inputs():
    """J = [[1, 2], [3, 4], [5, 6]], so J v adds up its columns with the weights v."""
    matrix = tensor([[1, 2], [3, 4], [5, 6]])
    check([21.0, 43.0, 65.0], along(lambda x: paddle.matmul(matrix, x), tensor([7, 7]), tensor([1, 10])),
          "jvp of A x along v = [1, 10], A = [[1, 2], [3, 4], [5, 6]]: a vector like the result, A v")


def test_a_number_of_two():
    check(23.0, along(lambda x, y: x * y, [tensor(2), tensor(3)], [tensor(1), tensor(10)]),
          "jvp of x * y at x = 2, y = 3 along (1, 10): 3 * 1 + 2 * 10")


def test_no_direction_means_ones():
    check([4.0, 4.0], along(lambda x: x * x.sum(), tensor([1, 1])),
          "jvp of x * sum(x) at x = [1, 1], v left out: each result changes by 2 * 1 + 1 * 2")


def test_several_results():
    found = jvp(lambda x: (x * x, x.sum()), tensor([1, 3]), tensor([1, 0.5]))
    check(tuple, type(found[1]), "the type of the derivatives of a function with two results")
    check(([2.0, 3.0], 1.5), found[1], "jvp of (x * x, sum(x)) at x = [1, 3] along [1, 0.5]")


def test_what_does_not_depend_on_x():
    check(([2.0, 3.0], [0.0]), along(lambda x: (x * x, paddle.ones([1], "float64")), tensor([1, 3]), tensor([1, 0.5])),
          "jvp of (x * x, a constant) at x = [1, 3] along [1, 0.5]: a constant changes by 0")
    check([2.0], along(lambda x, y: x * x, [tensor([1]), tensor([5])], [tensor([1]), tensor([7])]),
          "jvp of f(x, y) = x * x at x = 1, y = 5 along (1, 7): y does not matter")


def test_the_tensors_given_stay_as_they_are():
    x = tensor([1, 3])
    x.stop_gradient = False
    jvp(lambda x: x * x, x, tensor([1, 0.5]))
    check(None, x.grad, "x.grad after jvp(f, x, v), which is nobody's backward()")


def test_where_nothing_is_recorded():
    with paddle.no_grad():
        check([2.0, 3.0], along(lambda x: x * x, tensor([1, 3]), tensor([1, 0.5])),
              "jvp of x * x at x = [1, 3] along v = [1, 0.5], under no_grad()")


def test_a_direction_of_another_shape():
    try:
        got = jvp(lambda x: x * x, tensor([1, 3]), tensor([1, 1, 1]))
    except ValueError:
        got = "a ValueError"
    check("a ValueError", got, "jvp of x * x at x = [1, 3] along v = [1, 1, 1]")


def test_against_differences():
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (3, 2), (2, 5)):
        a, x, v = rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=n)

        def plain(x, a=a):
            return np.tanh(a @ x) * np.exp(a @ x).sum()

        def func(x, a=a):
            z = paddle.matmul(tensor(a), x)
            return paddle.tanh(z) * paddle.exp(z).sum()
        step = 1e-6
        want = (plain(x + step * v) - plain(x - step * v)) / (2 * step)
        check(want, along(func, tensor(x), tensor(v)), f"a function of {n} numbers with {m} results, at random",
              rtol=1e-6)
