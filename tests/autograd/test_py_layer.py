"""PyLayer: gradients, what backward sees, second derivatives, memory, and what is refused."""

import gc
import weakref

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd import PyLayer
from minipd.framework.context import using
from minipd.ir.program import Program
from minipd.ir.trace import Trace


def leaf(data, dtype="float64"):
    return paddle.to_tensor(data, dtype=dtype, stop_gradient=False)


class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * 3.0 * x * x


class Exp(PyLayer):
    """Saves its own result."""

    @staticmethod
    def forward(ctx, x):
        y = paddle.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensor()
        return g * y


class TwoInTwoOut(PyLayer):
    @staticmethod
    def forward(ctx, x, k, y=None):
        ctx.k = k
        return x * k + y, x - y

    @staticmethod
    def backward(ctx, a, b):
        ctx.seen = (a, b)
        return a * ctx.k + b, a - b


def test_the_rule_is_the_users():
    x = leaf([1.0, -2.0])
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_several_tensors_among_other_arguments():
    x, y = leaf([1.0, 2.0]), leaf([5.0, 7.0])
    a, b = TwoInTwoOut.apply(x, 3.0, y=y)
    assert a.tolist() == [8.0, 13.0] and b.tolist() == [-4.0, -5.0]
    (a * 2.0 + b).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0] and y.grad.tolist() == [1.0, 1.0]


def test_a_result_that_nobody_used_counts_as_zero():
    x, y = leaf([1.0]), leaf([1.0])
    TwoInTwoOut.apply(x, 3.0, y=y)[1].backward()
    assert x.grad.tolist() == [1.0] and y.grad.tolist() == [-1.0]


@pytest.mark.parametrize("f, third", [(Cube.apply, lambda x: np.full_like(x, 6.0)), (Exp.apply, np.exp)])
def test_third_derivatives_go_through_backward(f, third):
    values = np.array([0.5, -1.0])
    x = leaf(values)
    (g,) = paddle.grad(f(x), x, create_graph=True)
    (gg,) = paddle.grad(g, x, create_graph=True)
    (ggg,) = paddle.grad(gg, x)
    np.testing.assert_allclose(ggg.numpy(), third(values), rtol=1e-12)


def test_none_is_the_gradient_of_a_constant():
    class Scaled(PyLayer):
        @staticmethod
        def forward(ctx, x, c):
            ctx.c = c
            return x * c

        @staticmethod
        def backward(ctx, g):
            return g * ctx.c, None

    x = leaf([2.0])
    Scaled.apply(x, paddle.to_tensor([3.0], dtype="float64")).backward()
    assert x.grad.tolist() == [3.0]


def test_marked_results_get_no_history():
    class Both(PyLayer):
        @staticmethod
        def forward(ctx, x):
            a, b = x + x, x * 3.0
            ctx.mark_non_differentiable(a)
            return a, b

        @staticmethod
        def backward(ctx, a, b):
            assert a.tolist() == [0.0]
            return b * 3.0

    x = leaf([1.0])
    a, b = Both.apply(x)
    assert a.stop_gradient and not b.stop_gradient
    b.backward()
    assert x.grad.tolist() == [3.0]


def test_materialize_grads_off_gives_none():
    class Two(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2.0, x * 3.0

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a * 2.0

    x = leaf([1.0])
    Two.apply(x)[0].backward()
    assert x.grad.tolist() == [2.0]


def test_an_input_that_forward_returns_is_a_new_tensor():
    class Pass(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10.0

    x = leaf([1.0])
    y = Pass.apply(Pass.apply(x))
    assert y is not x and y.tolist() == [1.0]
    y.backward()
    assert x.grad.tolist() == [100.0]


def test_without_gradients_it_is_a_function():
    x = paddle.to_tensor([2.0])
    assert Cube.apply(x).stop_gradient
    with paddle.no_grad():
        assert Cube.apply(leaf([2.0])).stop_gradient


def test_int_results_get_no_history_and_gradients_are_cast():
    class Mixed(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x.astype("int64"), x.astype("float64")

        @staticmethod
        def backward(ctx, _, g):
            assert g.dtype == "float64"
            return g

    x = leaf([1.5], "float32")
    n, y = Mixed.apply(x)
    assert n.stop_gradient
    y.backward()
    assert x.grad.dtype == "float32" and x.grad.tolist() == [1.0]


@pytest.mark.parametrize("got, error, words", [
    (lambda g: (g, g), ValueError, "expected 1 gradients, one per tensor that forward was given .* got 2"),
    (lambda g: g.sum(), ValueError, r"expected a gradient of shape \[2\] for tensor 0 of forward, got f64\[\]"),
    (lambda g: 1.0, TypeError, "expected a Tensor or None for tensor 0 of forward, got float"),
])
def test_what_backward_returns_is_checked(got, error, words):
    class Bad(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, g):
            return got(g)

    with pytest.raises(error, match=words):
        Bad.apply(leaf([1.0, 2.0])).sum().backward()


def test_a_saved_tensor_that_is_written_afterwards_is_found_out():
    x = leaf([1.0])
    y = x * 1.0
    z = Cube.apply(y)
    y.add_(paddle.to_tensor([1.0], dtype="float64"))
    with pytest.raises(RuntimeError, match="saved for the backward of a PyLayer and modified in place.*clone"):
        z.backward()


def test_a_second_backward_is_refused_and_retained_ones_are_not():
    x = leaf([2.0])
    y = Cube.apply(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0]
    with pytest.raises(RuntimeError, match="backward through Cube a second time"):
        y.backward()


def test_a_program_of_static_mode_refuses_it():
    with using(ground=Trace(Program())), pytest.raises(RuntimeError, match="inside a program of `trace`"):
        x = paddle.ones([1])
        x.stop_gradient = False
        Cube.apply(x)


def test_the_graph_is_freed_with_its_last_handle():
    gc.collect()
    gc.disable()
    try:
        y = Exp.apply(leaf([1.0]))
        node = weakref.ref(y.node)
        del y
        assert node() is None
    finally:
        gc.enable()
