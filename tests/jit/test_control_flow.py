"""Branches and loops in compiled functions: gradients through stacks that outlive the forward run, and random draws."""

import numpy as np
import pytest

import minipd as paddle
from minipd.executor import Executor
from minipd.ir.traced import trace
from minipd.ir.verify import verify
from minipd.jit import to_static
from minipd.jit.joint import with_backward
from minipd.static import InputSpec
from minipd.static.nn import cond, while_loop

A = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])
B = np.array([[1.0, 0.7, -0.5], [0.5, -0.9, 0.6]])


def nested(x, y):
    def body(i, h):
        def inner():
            return while_loop(lambda j, g: j < i, lambda j, g: [j + 1, (g * y).tanh() + h], [0, h])[1]
        return [i + 1, cond(h.mean() > 0.0, inner, lambda: h * x + 0.5) * 0.8]
    return while_loop(lambda i, h: i < 4, body, [0, x])[1]


def tensors(*arrays):
    return [paddle.to_tensor(a, stop_gradient=False) for a in arrays]


def gradients(f, *arrays):
    xs = tensors(*arrays)
    out = f(*xs)
    out.sum().backward()
    return [out.numpy(), *(x.grad.numpy() for x in xs)]


def test_nothing_runs_twice():
    """The backward program takes the stacks of the forward run."""
    specs = [InputSpec((2, 3), "float64", n, stop_gradient=False) for n in "xy"]
    traced = trace(nested, *specs)
    joint = with_backward(traced.program, ["output_0"], dict(zip("xy", traced.input_values, strict=True)))
    verify(joint.forward)
    verify(joint.backward)
    assert not any(op.name() in ("pd_op.tanh", "cf.tuple_push") for op in joint.backward.walk())
    found = Executor(joint.forward).run({"x": A, "y": B})
    stacks = [name for name in joint.saved if isinstance(found[name], list)]
    assert [len(found[name]) for name in stacks] == [4, 4]          # the loop's; the branch's, which is always taken
    backward = Executor(joint.backward)
    feed = {"x": A, "y": B, "grad_0": np.ones((2, 3))} | {n: found[n] for n in joint.saved}
    first, second = (backward.run({n: feed[n] for n in backward.inputs}) for _ in range(2))
    for name, expected in zip("xy", gradients(nested, A, B)[1:], strict=True):
        np.testing.assert_allclose(first[name], expected, rtol=1e-12)
        np.testing.assert_array_equal(first[name], second[name])        # the stack is as it was
    with pytest.raises(ValueError, match=r"input 'saved_\d': expected the stack that another program gives.*got 3"):
        backward.run({n: 3 if n in stacks else feed[n] for n in backward.inputs})


@pytest.mark.parametrize("feeds", [(A, B), (B, A), (-A, B)])
def test_gradients(feeds):
    compiled = to_static(nested)
    for _ in range(2):
        for got, expected in zip(gradients(compiled, *feeds), gradients(nested, *feeds), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_two_backward_passes():
    x, y = tensors(A, B)
    out = to_static(nested)(x, y).sum()
    out.backward(retain_graph=True)
    once = x.grad.numpy().copy()
    out.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * once)


def test_what_is_on_a_stack_is_nobody_elses():
    """The first iteration pushes the input, the last one leaves the result: writing either harms nothing."""
    def f(x):
        return while_loop(lambda i, h: i < 3, lambda i, h: [i + 1, h * h], [0, x])[1]
    x, = tensors(A)
    y = x * 1.0
    out = to_static(f)(y)
    expected = 8 * A ** 7
    y.payload[...] = 9.0
    out.payload[...] = 7.0
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12)


def test_generated_kernels_in_regions():
    """A region is a barrier: what is in it is fused among itself."""
    def f(x, y):
        def body(i, h):
            return [i + 1, cond(h.mean() > 0.0, lambda: (h * y).tanh() * 0.5 + h, lambda: h.exp() - y)]
        return while_loop(lambda i, h: i < 3, body, [0, x])[1]
    compiled = to_static(f, backend="CINN")
    for got, expected in zip(gradients(compiled, A, B), gradients(f, A, B), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    for program in (compiled.last.runnable.forward.program, compiled.last.runnable.backward.program):
        loop = next(op for op in program.walk() if op.name() == "pd_op.while")
        inside = [op.name() for block in loop.blocks() for op in block]
        assert "pd_op.if" in inside and "cinn_runtime.jit_kernel" in inside and "pd_op.tanh" not in inside


# ------------------------------------------------------------------------------------------------ random numbers
def dropped(x, n):
    return while_loop(lambda i, h: i < n, lambda i, h: [i + 1, paddle.nn.functional.dropout(h, 0.3) + 0.1], [0, x])[1]


class Net(paddle.nn.Layer):
    """Draws in front of a loop, in it, in a branch of it, and behind it; in layers with paths of their own."""

    def __init__(self):
        super().__init__()
        self.a, self.b = paddle.nn.Dropout(0.5), paddle.nn.Dropout(0.25)

    def forward(self, x, n):
        def body(i, h):
            h = self.a(h) + 0.5
            h = cond(i % 2 == 0, lambda: self.b(self.a(h)), lambda: h + paddle.rand([2, 3]))
            return [i + 1, h]
        x = self.a(x)
        _, h = while_loop(lambda i, h: i < n, body, [0, x])
        return self.b(h) + self.a(h) * paddle.uniform([2, 3], "float64")


@pytest.mark.parametrize("as_paddle", [False, True])
@pytest.mark.parametrize("make", [lambda: dropped, Net])
def test_a_loop_draws_what_eager_mode_draws(make, as_paddle):
    f = make()
    compiled = to_static(make())
    x = np.linspace(1, 2, 6).reshape(2, 3)

    def run(f):
        rng = paddle.seed(11)
        if as_paddle:
            rng.draw_as_paddle()
        found = []
        for n in (3, 0, 5):
            a, = tensors(x)
            out = f(a, paddle.to_tensor(n))
            out.sum().backward()
            found += [out.numpy(), a.grad.numpy()]
        return [*found, paddle.rand([2]).numpy()]
    eager, got = run(f), run(compiled)
    paddle.seed(0)
    for a, b in zip(got, eager, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    assert len({a.tobytes() for a in eager[::2]}) == 4


def test_every_iteration_draws_anew():
    def f(x):
        return while_loop(lambda i, h, s: i < 50, lambda i, h, s: [i + 1, paddle.rand([1]), s + (h < 0.5)],
                          [0, x, x * 0.0])
    paddle.seed(1)
    _, last, count = to_static(f)(paddle.zeros([1]))
    assert 0 < last.item() < 1 and 10 < count.item() < 40
