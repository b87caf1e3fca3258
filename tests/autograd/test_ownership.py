"""Gradients have memory of their own: writing one in place changes no other, and not what the caller gave."""

import numpy as np
import pytest

import minipd as paddle


def leaf(*shape):
    return paddle.to_tensor(np.ones(shape), stop_gradient=False)


FUNCTIONS = {
    "both operands of a sum": lambda x, y: x + y,
    "add_n": lambda x, y: paddle.add_n([x, y]),
    "a view": lambda x, y: (x.reshape([2, 3]) + y.reshape([2, 3])).reshape([6]),
    "a copy": lambda x, y: x.clone() + y.clone(),
    "parts": lambda x, y: paddle.concat([x, y])[1:7],
    "expanded": lambda x, y: (x.sum() + y.sum()).expand([6]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_leaves_share_nothing(name):
    x, y = leaf(6), leaf(6)
    g = paddle.to_tensor(np.arange(6.0))
    FUNCTIONS[name](x, y).backward(g)
    before = y.grad.tolist()
    with paddle.no_grad():
        x.grad.scale_(scale=0.5)
    assert y.grad.tolist() == before and g.tolist() == [0, 1, 2, 3, 4, 5]
    with paddle.no_grad():
        y.grad.zero_()
    assert y.grad.numpy().max() == 0 and g.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_returned_gradients_share_nothing(name):
    x, y = leaf(6), leaf(6)
    g = paddle.to_tensor(np.arange(6.0))
    dx, dy = paddle.grad(FUNCTIONS[name](x, y), [x, y], g)
    before = dy.tolist()
    dx.zero_()
    assert dy.tolist() == before and g.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_leaf_that_is_the_result():
    x, g = leaf(3), paddle.to_tensor(np.ones(3))
    x.backward(g)
    with paddle.no_grad():
        x.grad.zero_()
    assert g.tolist() == [1, 1, 1]
