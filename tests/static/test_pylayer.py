"""static_pylayer, PyLayer and hooks in programs: where the user's rule is called, and where it is refused."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.context import using
from minipd.ir.program import Program
from minipd.ir.trace import Trace
from minipd.static.nn import cond, static_pylayer, while_loop


class Tripled(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, g):
        return g * 3.0


@pytest.fixture
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


def run(build, a):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [2], "float64")
        x.stop_gradient = False
        out = build(x)
        g, = paddle.static.gradients([out], [x])
        return paddle.static.Executor().run(main, feed={"x": a}, fetch_list=[out, g])


def test_static_pylayer(static_mode):
    a = np.array([1.0, 2.0])
    out, g = run(lambda x: static_pylayer(paddle.exp, [x], lambda g: 2.0 * g.exp()), a)
    np.testing.assert_allclose(out, np.exp(a))
    np.testing.assert_allclose(g, 2 * np.exp([1.0, 1.0]))
    out, g = run(lambda x: Tripled.apply(x) * x, a)
    np.testing.assert_allclose([out, g], [a * a, 4 * a])
    out, g = run(lambda x: static_pylayer(paddle.exp, [x]) + x, a)          # without a rule, no gradient flows
    np.testing.assert_allclose([out, g], [np.exp(a) + a, np.ones(2)])


def test_several_inputs_and_results():
    x, y = (paddle.to_tensor(v, stop_gradient=False) for v in (2.0, 5.0))
    a, b = static_pylayer(lambda x, y: (x * y, x + y), [x, y], lambda g, h: (g * 10.0, None))
    (a + b).backward()
    assert (a.item(), b.item(), x.grad.item(), y.grad) == (10.0, 7.0, 10.0, None)


@pytest.mark.parametrize("call, message", [
    (lambda x: static_pylayer(3, [x]), "forward_fn to be a function, got 3"),
    (lambda x: static_pylayer(paddle.exp, [x], 3), "backward_fn to be a function, got 3"),
    (lambda x: static_pylayer(paddle.exp, x), "inputs to be a list of tensors")])
def test_arguments_that_do_not_fit(call, message):
    with pytest.raises(TypeError, match=message):
        call(paddle.to_tensor(1.0))


def hooked(h):
    h = h * 1.0
    h.register_hook(lambda g: g * 3.0)
    return h


@pytest.mark.parametrize("part", [Tripled.apply, hooked])
def test_rules_of_the_user_in_a_region_are_refused(part):
    """Its gradient would not call them, and be wrong."""
    def loop(x):
        return while_loop(lambda i, h: i < 2, lambda i, h: [i + 1, part(h)], [0, x])[1].sum()

    def branch(x):
        return cond(x.sum() > 0, lambda: part(x), lambda: x).sum()
    for f in (loop, branch):
        x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        with pytest.raises(NotImplementedError, match=r"test_pylayer.py:\d+: expected it outside of the branches and"):
            paddle.jit.to_static(f)(x)
        f(x).backward()
        assert x.grad.tolist() == ([9.0, 9.0] if f is loop else [3.0, 3.0])


def test_beside_a_loop_the_rule_is_called():
    """The loop's stacks are carried over where the tape differentiates the program."""
    def f(x):
        h = while_loop(lambda i, h: i < 2, lambda i, h: [i + 1, h * x], [0, Tripled.apply(x)])[1]
        return Tripled.apply(h).sum()
    for g in (f, paddle.jit.to_static(f)):
        x = paddle.to_tensor([2.0, 3.0], stop_gradient=False)
        g(x).backward()
        np.testing.assert_allclose(x.grad.numpy(), 3 * (3 * np.array([4.0, 9]) + 2 * np.array([4.0, 9])))


def test_in_a_plain_trace_it_is_refused():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    trace = Trace(Program())
    with using(ground=trace), pytest.raises(RuntimeError, match="inside a program of `trace`"):
        y = x * 1.0
        Tripled.apply(y)
