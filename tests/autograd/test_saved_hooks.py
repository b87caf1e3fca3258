"""Hooks on what the tape saves, and recomputation, which is made of them."""

import gc
import weakref

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd import PyLayer, recompute, saved_tensors_hooks
from minipd.nn import functional as F


def leaf(data, dtype="float64"):
    return paddle.to_tensor(data, dtype=dtype, stop_gradient=False)


class Square(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensor()
        return g * 2.0 * x


def test_every_saved_value_is_packed_and_unpacked_once():
    packed, unpacked = [], []
    x, w = leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))

    def pack(t):
        packed.append(tuple(t.shape))
        return t.numpy()

    def unpack(a):
        unpacked.append(a.shape)
        return paddle.to_tensor(a)

    with saved_tensors_hooks(pack, unpack):
        y = paddle.concat([Square.apply(paddle.exp(x @ w)), x @ w], axis=0).sum()
    assert sorted(packed) == sorted([(2, 3), (3, 2), (2, 2), (2, 2), (2, 3), (3, 2)])
    y.backward()
    assert sorted(unpacked) == sorted(packed)
    want = leaf(np.ones((2, 3))), leaf(np.ones((3, 2)))
    paddle.concat([Square.apply(paddle.exp(want[0] @ want[1])), want[0] @ want[1]], axis=0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), want[0].grad.numpy())
    np.testing.assert_array_equal(w.grad.numpy(), want[1].grad.numpy())


def test_values_may_come_back_changed():
    x = leaf([1.0, 3.0])
    with saved_tensors_hooks(lambda t: t.numpy(), lambda a: paddle.to_tensor(a) * 2.0):
        y = (x * x).sum()
    y.backward()
    assert x.grad.tolist() == [4.0, 12.0]


def test_second_derivatives_keep_their_history():
    x = leaf([1.0, 3.0])
    with saved_tensors_hooks(lambda t: t.numpy(), paddle.to_tensor):
        y = x * x * x
    (g,) = paddle.grad(y, x, create_graph=True)
    (gg,) = paddle.grad(g, x)
    assert gg.tolist() == [6.0, 18.0]


def test_outside_of_the_block_nothing_is_packed():
    with saved_tensors_hooks(lambda t: 1 / 0, None):
        pass
    x = leaf([2.0])
    (x * x).backward()
    assert x.grad.tolist() == [4.0]


def test_unpack_must_return_a_tensor():
    x = leaf([2.0])
    with saved_tensors_hooks(lambda t: t.numpy(), lambda a: a):
        y = x * x
    with pytest.raises(TypeError, match="expected unpack_hook to return a Tensor, got ndarray"):
        y.backward()


# ----------------------------------------------------------------------------------------------- recompute
def block(x, w):
    h = paddle.tanh(x @ w)
    return F.dropout(h, 0.5) * h


def gradients(call):
    paddle.seed(3)
    x, w = leaf(np.linspace(-1, 1, 12).reshape(4, 3)), leaf(np.linspace(0, 1, 9).reshape(3, 3))
    y = call(block, x, w)
    y = call(block, y, w)
    (y * y).sum().backward()
    return y.numpy(), x.grad.numpy(), w.grad.numpy()


def test_recomputed_gradients_equal_kept_ones_with_dropout():
    for got, want in zip(gradients(recompute), gradients(lambda f, *a: f(*a)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_the_random_numbers_that_follow_are_those_that_would_have():
    def after(call):
        paddle.seed(3)
        y = call(block, leaf(np.ones((2, 3))), leaf(np.ones((3, 3))))
        y.sum().backward()
        return paddle.rand([3]).numpy()
    np.testing.assert_array_equal(after(recompute), after(lambda f, *a: f(*a)))


def test_parameters_that_the_function_reads_get_gradients():
    w = leaf([3.0])
    x = leaf([2.0])
    recompute(lambda x: paddle.exp(x * w), x).backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * np.exp(6.0))
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp(6.0))


def test_it_runs_again_once_and_not_before_backward():
    calls = []

    def f(x):
        calls.append(len(calls))
        return paddle.exp(paddle.tanh(x) * x)

    x = leaf([1.0])
    y = recompute(f, x)
    assert len(calls) == 1
    y.backward(retain_graph=True)
    assert len(calls) == 2
    first = x.grad.numpy().copy()
    y.backward()
    assert len(calls) == 2                                      # what was retained is what was computed again
    np.testing.assert_array_equal(x.grad.numpy(), 2 * first)


def test_reference_counts_alone_free_what_it_keeps():
    gc.collect()
    gc.disable()
    try:
        h = leaf([1.0]) * 1.0
        between = weakref.ref(h)
        y = recompute(lambda x: paddle.exp(paddle.tanh(x)), h)
        del h
        assert between() is not None
        y.backward()
        assert between() is None
    finally:
        gc.enable()


def test_without_gradients_it_is_a_call():
    with paddle.no_grad():
        assert recompute(lambda x: x * 2.0, leaf([1.0])).tolist() == [2.0]


def test_an_argument_that_is_written_afterwards_is_found_out():
    x = leaf([1.0]) * 1.0
    y = recompute(lambda x: x * x, x)
    x.add_(paddle.to_tensor([1.0], dtype="float64"))
    with pytest.raises(RuntimeError, match="modified in place after the call, so that the call cannot be repeated"):
        y.backward()


def test_a_function_that_does_something_else_the_second_time_is_found_out():
    calls = []

    def f(x):
        calls.append(0)
        return paddle.exp(x) if len(calls) == 1 else x * x

    y = recompute(f, leaf([1.0]))
    with pytest.raises(RuntimeError, match="the second run saved 2 values for backward that are not like the 1 of the"):
        y.backward()


def test_it_has_paddles_names():
    from minipd.distributed.fleet.utils import recompute as of_fleet
    assert of_fleet(lambda x: x * 2.0, leaf([1.0])).tolist() == [2.0]
