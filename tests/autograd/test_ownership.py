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


def test_what_is_copied_does_not_depend_on_where_memory_lies():
    """An array that is gone may have left its id to another: that one is nobody else's for that reason."""
    def shape_of_tape():
        x = paddle.to_tensor(0.5, dtype="float64", stop_gradient=False)
        y = paddle.tanh(x)
        for _ in range(4):
            (y,) = paddle.grad(y, x, create_graph=True)
        found, todo = set(), [y.node]
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo += [edge[0] for edge in node.edges if edge is not None]
        return sorted(node.row.name for node in found if node.row is not None)
    first, others = shape_of_tape(), []
    for n in range(20):
        others.append([np.empty(()) for _ in range(n)])         # so that memory lies elsewhere each time
        assert shape_of_tape() == first
    assert "assign" not in first                                # nobody else holds what `grad` gives here
