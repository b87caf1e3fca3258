"""Oracle: derivatives worked by hand on graphs in which values are used several times."""

import math

import minipd as paddle
from minipd.autograd.tape import record_call
from tools.course.checking import check


def leaf(data):
    return paddle.to_tensor(data, "float64", stop_gradient=False)


def gradients(f, *values):
    """The gradients of f at `values`, as a list."""
    def run():
        leaves = [leaf(v) for v in values]
        f(*leaves).backward()
        return [x.grad.tolist() for x in leaves]
    return run


def test_one_use():
    check([2.0], gradients(lambda x: x * 2.0, 3.0), "2 x")


def test_one_tensor_on_both_sides():
    check([2.0], gradients(lambda x: x + x, 3.0), "x + x")
    check([6.0], gradients(lambda x: x * x, 3.0), "x * x at x = 3")


def test_an_intermediate_with_two_users():
    def f(a, b):
        c = a + b
        d = a * b
        return c + d + c * d
    check([25.0, 19.0], gradients(f, 2.0, 3.0), "a = 2, b = 3, c = a + b, d = a b, y = c + d + c d")


def test_a_long_and_a_short_way():
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(g.item()))
        long = y * 1.0 * 1.0 * 1.0
        return long * 5.0 + y * 3.0
    check([32.0], gradients(f, 2.0), "5 (y * 1 * 1 * 1) + 3 y, where y = x * x, at x = 2")
    check([8.0], seen, "the gradients that arrived at y in 5 (y * 1 * 1 * 1) + 3 y: one, and complete")


def test_a_constant_gets_nothing():
    w = paddle.to_tensor(2.0, "float64")
    check([2.0], gradients(lambda x: x * w + w, 3.0), "x w + w by x, where w = 2 has stop_gradient=True")
    check(None, w.grad, "w.grad of x w + w, where w has stop_gradient=True")


def test_a_result_that_gets_none():
    check([[1.0, 1.0, 0.0, 0.0]], gradients(lambda x: paddle.split(x, 2)[0].sum(), [1.0, 2.0, 3.0, 4.0]),
          "x = [1, 2, 3, 4] split in two, of which only the first part is used")


def test_both_results_of_one_operation():
    def f(x):
        a, b = paddle.split(x, 2)
        return (a * b).sum()
    check([[3.0, 4.0, 1.0, 2.0]], gradients(f, [1.0, 2.0, 3.0, 4.0]),
          "x = [1, 2, 3, 4] split in two, and the sum of the product of both parts")


def test_a_rule_that_has_nothing_for_an_input():
    """A rule for all inputs at once may return None for some of them."""
    class Row:
        name, multi, raw_gradient = "first_of_two", False, False

    def f():
        x, y = leaf([1.0]), leaf([2.0])
        out = paddle.Tensor(x.payload)
        out.stop_gradient = False
        record_call(Row, [x, y], [out], lambda g: [g, None])
        (out * 3.0).backward()
        return x.grad.tolist(), y.grad
    check(([3.0], None), f, "x.grad and y.grad of 3 f(x, y), where the rule of f returns [g, None]")


def test_a_shared_gradient_is_not_written():
    """c's rule hands one and the same gradient to a and to b; what is added to a's must not be added to b's."""
    check([2.0, 1.0], gradients(lambda a, b: (a + b) + a, 1.0, 1.0), "c + a, where c = a + b")


def test_leaves_do_not_share_their_gradients():
    def f():
        a, b, g = leaf([1.0]), leaf([1.0]), leaf([1.0])
        (a + b).backward(g)
        with paddle.no_grad():
            a.grad.scale_(10.0)
        return b.grad.tolist(), g.tolist()
    check(([1.0], [1.0]), f, "b.grad, and the g that was given, after (a + b).backward(g) and a.grad.scale_(10)")


def test_only_the_way_that_was_asked_for():
    """`swiglu(x, y) = silu(x) y` has one rule for both inputs, which returns a gradient for y too; from y = 3 x would
    come another 3 silu(x)."""
    def f(blocked):
        x = leaf(1.0)
        y = x * 3.0
        return paddle.grad(paddle.swiglu(x, y), x, no_grad_vars=[y] if blocked else None)[0].item()

    def silu(v):
        return v / (1.0 + math.exp(-v))
    slope = (silu(1.0 + 1e-5) - silu(1.0 - 1e-5)) / 2e-5
    check(3.0 * slope + 3.0 * silu(1.0), lambda: f(False), "swiglu(x, 3 x) by x, at x = 1", rtol=1e-8)
    check(3.0 * slope, lambda: f(True), "swiglu(x, y) by x at x = 1, where y = 3 x counts as a constant "
                                        "(no_grad_vars=[y])", rtol=1e-8)


def test_five_thousand_operators_deep():
    def f(x):
        for _ in range(5000):
            x = x + 1.0
        return x
    check([1.0], gradients(f, 0.0), "x + 1 + 1 + ... (5000 times)")


def test_many_users():
    def f(x):
        y = x * 1.0
        total = y
        for i in range(1, 50):
            total = total + y * float(i)
        return total
    check([1226.0], gradients(f, 2.0), "y + 1 y + 2 y + ... + 49 y, where y = x * 1")
