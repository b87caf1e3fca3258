"""What the tape keeps between forward and backward, in bytes: what the gradients need by hand count, and each memory
once, however many operators and views refer to it."""

import gc
import sys

import numpy as np
import pytest

import minipd as paddle
from minipd.autograd.saved_hooks import Packed
from minipd.nn import functional as F

RNG = np.random.default_rng(0)
F32, I32, I64 = 4, 4, 8                 # bytes of an element


def tensor(*shape, wanted=True):
    return paddle.to_tensor(RNG.standard_normal(shape).astype("float32"), stop_gradient=not wanted)


def nodes_of(y):
    todo, seen = [y.node], set()
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo += [edge[0] for edge in node.edges if edge is not None]
    return seen


def kept(y):
    """The arrays that the graph of y keeps: each memory once, as the array that owns it."""
    roots = {}
    for node in nodes_of(y):
        for value in node.saved or ():
            for v in value if type(value) is list else [value]:
                assert type(v) is not Packed
                if type(v) is tuple and len(v) == 3:        # not (shape, dtype)
                    root = v[0]
                    while isinstance(root.base, np.ndarray):
                        root = root.base
                    roots[id(root)] = root
    return list(roots.values())


def bytes_of(arrays):
    return sum(a.nbytes for a in arrays)


def mlp():
    """8 rows, 5 -> 6 -> 7 classes."""
    x, label = tensor(8, 5, wanted=False), paddle.to_tensor(RNG.integers(0, 7, [8]))
    w1, b1, w2, b2 = tensor(5, 6), tensor(6), tensor(6, 7), tensor(7)
    y = F.cross_entropy(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2), label)
    floats = (8 * 5         # x, for w1
              + 8 * 6       # relu's result, for relu and for w2
              + 6 * 7       # w2, for relu's result; w1 is not: nobody wants the gradient of x
              + 8 * 7       # softmax, for the logits
              + 1)          # how many labels count, which the mean divides by
    return y, floats * F32 + 8 * I64            # the labels


def conv_block():
    """2 images of 3 channels, 8 x 8 -> 4 channels, 4 x 4."""
    x = tensor(2, 3, 8, 8, wanted=False)
    kernel, scale, shift = tensor(4, 3, 3, 3), tensor(4), tensor(4)
    running = tensor(4, wanted=False), paddle.ones([4])
    y = F.conv2d(x, kernel, padding=1)
    y = F.relu(F.batch_norm(y, *running, scale, shift, training=True))
    y = F.max_pool2d(y, 2)
    floats = (2 * 3 * 64    # x, for the kernel
              + 2 * 4 * 64 + 4      # what was standardised, for itself and for the scale; the variances
              + 4           # the scale
              + 2 * 4 * 64)         # relu's result
    return y, floats * F32 + 2 * 4 * 16 * I32   # where the maxima were


def attention_block():
    """2 sequences of 6, 8 numbers each, 2 heads."""
    x, wq, wk, wv, wo = tensor(2, 6, 8), tensor(8, 8), tensor(8, 8), tensor(8, 8), tensor(8, 8)
    q, k, v = (F.linear(x, w).reshape([2, 6, 2, 4]) for w in (wq, wk, wv))
    seen = F.scaled_dot_product_attention(q, k, v)
    y = x + F.linear(seen.reshape([2, 6, 8]), wo)
    tokens = 2 * 6 * 8
    floats = (tokens        # x, for three weights
              + 4 * 64      # the weights, for what they multiply
              + 3 * tokens          # scaled queries, keys, values: for each other
              + 2 * 2 * 6 * 6       # softmax, for itself and for the values
              + tokens)     # what was seen, for the last weight
    return y, floats * F32


BLOCKS = {f.__name__: f for f in (mlp, conv_block, attention_block)}


@pytest.mark.parametrize("block", BLOCKS)
def test_hand_count(block):
    y, expected = BLOCKS[block]()
    assert bytes_of(kept(y)) == expected


@pytest.mark.parametrize("block", BLOCKS)
def test_backward_frees_everything(block):
    y, _ = BLOCKS[block]()
    gc.disable()                        # reference counts alone must do it
    try:
        arrays = kept(y)
        y.backward(paddle.ones_like(y))
        assert kept(y) == []
        del y
        assert [sys.getrefcount(a) for a in arrays] == [3] * len(arrays)    # the list, the loop and the question
    finally:
        gc.enable()


def test_views_keep_nothing_of_their_own():
    x = tensor(6, 4)
    y = x.exp()
    views = [y.reshape([4, 6]), y.transpose([1, 0]), y[2:5], y[:, 1], y.unsqueeze(0), y.flatten(),
             y.expand([3, 6, 4])]
    assert bytes_of(kept(y)) == 6 * 4 * F32                                 # exp's result
    assert [bytes_of(kept(v)) for v in views] == [6 * 4 * F32] * len(views)
    squares = [v * v for v in views]                                        # which want the values of the views
    assert [bytes_of(kept(s)) for s in squares] == [6 * 4 * F32] * len(views)


@pytest.mark.parametrize("unneeded", [
    lambda x: x + x, lambda x: x - 1.0, lambda x: x * 2.0, lambda x: -x, lambda x: x.sum(), lambda x: x.mean(0),
    lambda x: x.reshape([-1]), lambda x: x[1:], lambda x: paddle.concat([x, x]), lambda x: x.astype("float64"),
    lambda x: x.cumsum(0), lambda x: paddle.split(x, 2)[0],
])
def test_linear_operators_keep_no_values(unneeded):
    assert kept(unneeded(tensor(4, 4))) == []
