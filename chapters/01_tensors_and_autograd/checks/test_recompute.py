"""Oracle: the same function called without recompute; how often it runs is counted, and which programs must be refused
is told by hand."""

import numpy as np

import minipd as paddle
from minipd.autograd import recompute
from minipd.nn import functional as F
from tools.course.checking import check


def leaf(data):
    return paddle.to_tensor(data, "float64", stop_gradient=False)


def cube(x):
    return x * x * x


def refused(loss):
    """"refused" if the backward pass raises RuntimeError, else what else it does."""
    try:
        loss.backward()
    except RuntimeError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "not refused"


def test_a_cube():
    x = leaf([1.0, 2.0])

    def run():
        recompute(cube, x).sum().backward()
        return x.grad
    check([3.0, 12.0], run, "the gradient of recompute(x * x * x) at [1, 2]: 3 x^2")


def test_it_runs_once_forward_and_once_again_in_backward():
    calls = []

    def counted(x):
        calls.append("run")
        return paddle.exp(paddle.tanh(x) * x)
    y = recompute(counted, leaf([1.0]))
    check(1, len(calls), "how often the function has run before backward()")
    y.backward()
    check(2, len(calls), "how often the function has run after backward(), which asks for several saved values")


def test_every_argument_comes_again():
    x, w = leaf([2.0]), leaf([3.0])

    def run():
        recompute(lambda x, n, w: x * w * w * n, x, 10.0, w=w).sum().backward()
        return x.grad, w.grad
    check(([90.0], [120.0]), run,
          "the gradients by x = 2 and w = 3 of recompute(lambda x, n, w: x * w * w * n, x, 10.0, w=w)")


def test_what_the_function_reads_besides():
    x, w = leaf([2.0]), leaf([3.0])
    recompute(lambda x: x * w * w, x).backward()
    check(([9.0], [12.0]), (x.grad, w.grad), "the gradients of x * w * w, x = 2 an argument, w = 3 a parameter")


def dropped(call):
    """Gradients of a function with dropout, the masks of which must be the same both times."""
    paddle.seed(3)
    x = leaf(np.arange(1.0, 9.0))
    y = call(lambda x: F.dropout(x * x, 0.5), x)
    mask = (y.numpy() != 0).astype("float64")
    y.sum().backward()
    return x.grad.numpy(), 2 * np.arange(1.0, 9.0) * mask * 2


def test_the_same_random_numbers():
    got, want = dropped(recompute)
    check(want, got, "the gradient of dropout(x * x, 0.5), which is 2 * 2 x where the result is not 0, and else 0")


def test_draws_in_between():
    paddle.seed(3)
    x = leaf(np.arange(1.0, 9.0))
    y = recompute(lambda x: F.dropout(x * x, 0.5), x)
    paddle.rand([3])
    want = 4 * np.arange(1.0, 9.0) * (y.numpy() != 0)
    y.sum().backward()
    check(want, x.grad, "the gradient of dropout(x * x, 0.5), paddle.rand([3]) called before backward()")


def test_the_generator_is_left_as_it_was():
    def after(call):
        paddle.seed(3)
        y = call(lambda x: F.dropout(x * x, 0.5), leaf([1.0, 2.0]))
        paddle.rand([1])
        y.sum().backward()
        return paddle.rand([3]).numpy()
    check(after(lambda f, x: f(x)), after(recompute),
          "paddle.rand([3]) after backward(): the second run must not use up random numbers")


def test_the_generator_after_an_error():
    calls = []

    def fails(x):
        calls.append("run")
        y = F.dropout(x * x, 0.5)
        if len(calls) == 2:
            raise KeyError("the second run fails")
        return y
    paddle.seed(3)
    y = recompute(fails, leaf([1.0, 2.0]))
    paddle.rand([1])
    before = paddle.get_rng_state()
    try:
        y.sum().backward()
    except KeyError:
        pass
    check(before, paddle.get_rng_state(), "the state of the generator after a second run that raised an error")


def test_an_argument_that_was_written():
    x = leaf([3.0]) * 1.0
    y = recompute(cube, x)
    x.add_(paddle.ones([1], "float64"))
    check("refused", refused(y), "y = recompute(cube, x), then x.add_(1), then y.backward()")
    w = paddle.ones([1], "float64")
    w.add_(w)
    check("not refused", refused(recompute(lambda x, w: x * w, leaf([3.0]), w)),
          "w.add_(w), then recompute(lambda x, w: x * w, x, w), then backward(): written before the call")


def test_a_function_that_does_something_else_the_second_time():
    def other(first, second):
        calls = []

        def f(x):
            calls.append("run")
            return first(x) if len(calls) == 1 else second(x)
        return refused(recompute(f, leaf([[1.0, 2.0]])).sum())
    check("refused", other(lambda x: paddle.exp(x), cube), "exp(x) the first time, x * x * x the second: more is saved")
    check("refused", other(lambda x: paddle.exp(x), lambda x: paddle.exp(x.reshape([2]))),
          "exp(x) the first time, exp(x.reshape([2])) the second: one value each, of another shape")
    check("refused", other(lambda x: paddle.exp(x), lambda x: paddle.exp(x.astype("float32"))),
          "exp(x) the first time, exp(x.astype('float32')) the second: one value each, of another dtype")


def test_deep_in_each_other():
    x = leaf([0.5])
    recompute(lambda x: recompute(paddle.sin, paddle.exp(x)), x).backward()
    check(np.cos(np.exp([0.5])) * np.exp([0.5]), x.grad, "recompute(lambda x: recompute(sin, exp(x)), x) at x = 0.5")
