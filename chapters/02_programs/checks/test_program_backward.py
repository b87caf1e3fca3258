"""Oracles: derivatives worked by hand; counts of operations that a gradient needs."""

from collections import Counter

import numpy as np

import minipd as paddle
from minipd.executor import Executor
from minipd.framework.row import ROWS
from minipd.ir.backward import append_backward
from minipd.ir.builder import Builder
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.static.input import InputSpec
from tools.course.checking import check


def differentiate(f, *shapes, wrt=None, pin=False):
    """The program of f on float64 inputs, with its gradients appended; the gradients; and what was appended."""
    specs = [InputSpec(list(s), "float64", f"x{i}", stop_gradient=False) for i, s in enumerate(shapes)]
    traced = trace(f, *specs)
    before = set(traced.program.walk())
    values = [v for i, v in enumerate(traced.input_values) if wrt is None or i in wrt]
    found = append_backward(traced.program, [traced.output_values[0]], values, pin=pin)
    appended = Counter(op.name().partition(".")[2] for op in traced.program.walk() if op not in before)
    return traced, found, appended


def gradients(f, *arrays, wrt=None):
    """The gradients of f at `arrays`; None where f does not depend on one."""
    def run():
        arrays_ = [np.array(a, "float64") for a in arrays]
        traced, found, _ = differentiate(f, *(a.shape for a in arrays_), wrt=wrt)
        build = Builder(traced.program.global_block())
        for i, g in enumerate(found):
            if g is not None:
                build.output(f"g{i}", g)
        out = Executor(verify(traced.program)).run({f"x{i}": a for i, a in enumerate(arrays_)})
        return [out[f"g{i}"].tolist() if f"g{i}" in out else None for i in range(len(found))]
    return run


def appended(f, *shapes, wrt=None):
    """How many operations of each kind the gradient of f appends."""
    return lambda: dict(differentiate(f, *shapes, wrt=wrt)[2])


def test_one_operation():
    check([[2.0, 2.0]], gradients(lambda x: (x * 2.0).sum(), [1.0, 3.0]), "sum(2 x)")


def test_a_square():
    check([[2.0, 6.0]], gradients(lambda x: (x * x).sum(), [1.0, 3.0]), "sum(x * x) at x = [1, 3]")


def test_an_intermediate_with_two_users():
    def f(a, b):
        c, d = a + b, a * b
        return c + d + c * d
    check([25.0, 19.0], gradients(f, 2.0, 3.0), "a = 2, b = 3, c = a + b, d = a b, y = c + d + c d")


def test_what_comes_to_a_value_is_summed_once():
    def f(x):
        y = x.exp()
        return (y * 2.0 + y * 3.0 + y).sum()
    check([[6.0, 6.0]], gradients(f, [0.0, 0.0]), "sum(2 y + 3 y + y), y = exp(x), at x = 0")
    check((1, 3), lambda: tuple(appended(f, (2,))()[name] for name in ("add_n", "multiply")),
          "how many add_n and how many products are appended: the three gradients of y are summed, then the rule of "
          "exp runs once")


def test_only_what_is_asked_for():
    def f(x, w):
        return paddle.matmul(x, w).sum()
    check([[[3.0, 3.0]]], gradients(f, [[1.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]], wrt=[0]), "sum(x w) by x")
    check(1, lambda: differentiate(f, (1, 2), (2, 2), wrt=[0])[2]["matmul"],
          "how many products the gradient of sum(x w) by x alone appends")


def test_what_the_loss_does_not_read():
    def f(x):
        x.tanh().exp()
        return (x * 3.0).sum()
    check([[3.0]], gradients(f, [1.0]), "sum(3 x), beside an exp(tanh(x)) that nobody reads")
    check([[2.0], None], gradients(lambda x, y: (x * 2.0).sum(), [1.0], [1.0]), "sum(2 x) by x and by y")


def test_what_stops_the_gradient():
    def f(x):
        return (x * x.detach()).sum()
    check([[3.0]], gradients(f, [3.0]), "sum(x * x.detach()) at x = 3")


def test_several_results():
    def f(x):
        left, right = paddle.split(x, 2)
        return (left * 2.0 + right * 3.0).sum()
    check([[2.0, 2.0, 3.0, 3.0]], gradients(f, [1.0, 1.0, 1.0, 1.0]), "x split into left and right; sum(2 left + "
                                                                                "3 right)")
    check([[0.0, 0.0, 3.0, 3.0]], gradients(lambda x: (paddle.split(x, 2)[1] * 3.0).sum(), [1.0, 1.0, 1.0, 1.0]),
          "x split into left and right, of which only right is read: sum(3 right)")


def test_one_rule_for_all_inputs():
    check([[0.5, 0.5], [0.0, 0.0]], gradients(lambda x, y: paddle.swiglu(x, y).sum(), [0.0, 0.0], [1.0, 1.0]),
          "sum(swiglu(x, y)) = sum(x sigmoid(x) y) at x = 0, y = 1, by x and by y")
    check([[0.5, 0.5]], gradients(lambda x, y: paddle.swiglu(x, y).sum(), [0.0, 0.0], [1.0, 1.0], wrt=[0]),
          "the same by x alone")
    check([[1.0], [2.0]], gradients(lambda x, y: (paddle.concat([x, y]) * paddle.arange(1, 3, dtype="float64")).sum(),
                                    [7.0], [7.0]), "sum(concat([x, y]) * [1, 2])")


def test_one_rule_for_an_input_that_is_reached_and_one_that_is_not():
    def f(x):
        with paddle.no_grad():
            y = x * 3.0
        return paddle.swiglu(x, y).sum()
    s = float(1 / (1 + np.exp(-1.0)))
    check([[3 * (s + s * (1 - s))]], gradients(f, [1.0]),
          "sum(swiglu(x, y)) at x = 1, with y = 3 x under paddle.no_grad(): y counts as a constant")


def test_with_the_eager_gradient():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))

    def f(x, w):
        h = paddle.matmul(x, w)
        return (paddle.softmax(h) * h + h.exp()).sum()
    tensors = [paddle.to_tensor(a, "float64", stop_gradient=False) for a in (x, w)]
    f(*tensors).backward()
    got = gradients(f, x, w)()
    for name, t, g in zip(("x", "w"), tensors, got, strict=True):
        check(t.grad.numpy(), np.array(g), f"sum(softmax(x w) x w + exp(x w)) by {name}, against the eager gradient")


def test_gradients_are_pinned(monkeypatch):
    """Under `pin`, the gradient of every result is matched to its primal before it enters a rule (chapter 5)."""
    primals = []

    def match(g, like):
        primals.append(like.payload.get_defining_op().name().partition(".")[2])
        return g
    monkeypatch.setitem(ROWS, "match", match)
    differentiate(lambda x: (x.exp() * 2.0).sum(), (2,), pin=True)
    check(["exp", "multiply", "sum"], sorted(primals), "whose gradients are pinned in sum(2 exp(x)), with pin=True")


def test_a_long_program():
    def f(x):
        for _ in range(80):
            x = x * 1.0 + x * 0.0
        return x.sum()
    check([[1.0]], gradients(f, [5.0]), "x = x * 1 + x * 0, eighty times")
