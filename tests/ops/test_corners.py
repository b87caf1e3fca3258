"""Corner cases: empty tensors, infinities and NaN, ties, powers at zero, look-ups out of range, random draws."""

import ml_dtypes
import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F

RNG = np.random.default_rng(0)


def tensor(*shape):
    return paddle.to_tensor(RNG.normal(size=shape), stop_gradient=False)


def gradient_of(f, x):
    """(values, gradient) of f(x) for one random incoming gradient, the same for every f of one result shape."""
    x = paddle.to_tensor(x, stop_gradient=False)
    y = f(x)
    y.backward(paddle.to_tensor(np.random.default_rng(1).normal(size=y.shape)))
    return y.numpy(), x.grad.numpy()


# ------------------------------------------------------------------------------------------------ corners
def test_empty_tensors():
    """Hard case A10: gradients of what is not empty are zeros of the right shape."""
    x, y = tensor(3, 1), tensor(3, 0)
    z = x * y
    assert z.shape == [3, 0]
    z.sum().backward()
    assert x.grad.tolist() == [[0], [0], [0]] and y.grad.shape == [3, 0]
    assert paddle.sum(paddle.zeros([0])).item() == 0
    assert np.isnan(paddle.mean(paddle.zeros([0])).item())
    for f in (paddle.max, paddle.min, paddle.argmax):
        with pytest.raises(ValueError, match="is empty: nothing is the largest of no elements"):
            f(paddle.zeros([0, 2]), axis=0)
    a, b = tensor(2, 0), tensor(0, 3)
    c = paddle.matmul(a, b)
    assert c.tolist() == [[0, 0, 0], [0, 0, 0]]
    c.sum().backward()
    assert a.grad.shape == [2, 0] and b.grad.shape == [0, 3]


def test_softmax_of_masked_rows():
    """Hard case A12: a dead row is NaN in the plain softmax, as in numpy; the rest is right, also with infinities."""
    inf = float("inf")
    y = F.softmax(paddle.to_tensor([[0.0, -inf], [-inf, -inf]]))
    assert y.numpy()[0].tolist() == [1, 0] and np.isnan(y.numpy()[1]).all()


def test_equal_extremes():
    """Equal elements share the gradient, of max and min as of maximum and minimum (Paddle's rule)."""
    _, g = gradient_of(lambda x: paddle.max(x, axis=1, keepdim=True) * 0.0 + paddle.max(x), np.array([[1.0, 3.0, 3.0]]))
    assert g[0, 0] == 0 and g[0, 1] == g[0, 2] != 0
    x, y = (paddle.to_tensor([1.0, 2.0], stop_gradient=False) for _ in range(2))
    (paddle.maximum(x, y) + paddle.minimum(x, y)).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [1, 1]
    x, y = (paddle.to_tensor(v, stop_gradient=False) for v in ([2.0, 2.0, 1.0], [2.0, 1.0, 3.0]))
    paddle.maximum(x, y).sum().backward()
    assert x.grad.tolist() == [0.5, 1, 0] and y.grad.tolist() == [0.5, 0, 1]


def test_nan_passes_through_extremes():
    nan = float("nan")
    x = paddle.to_tensor([1.0, nan])
    assert np.isnan(paddle.max(x).item()) and np.isnan(paddle.min(x).item())
    assert np.isnan(paddle.maximum(x, paddle.to_tensor([2.0, 2.0])).numpy()).tolist() == [False, True]
    assert np.isnan(F.relu(x).numpy()).tolist() == [False, True]


def test_powers_at_zero():
    for exponent, want in ((0, [0, 0]), (1, [1, 1]), (2, [0, 4]), (paddle.to_tensor([0.0, 0.0], "float64"), [0, 0])):
        x = paddle.to_tensor(np.array([0.0, 2.0]), stop_gradient=False)
        (x**exponent).sum().backward()
        assert x.grad.tolist() == want
    y = paddle.to_tensor(np.array([0.0, 3.0]), stop_gradient=False)
    (paddle.zeros([2], "float64") ** y).sum().backward()
    assert y.grad.tolist() == [0, 0]


# ------------------------------------------------------------------------------------------------ look-ups
def test_embedding():
    table = tensor(5, 2)
    ids = paddle.to_tensor([[0, 4], [3, 3]])
    out = F.embedding(ids, table, padding_idx=3)
    assert out.numpy()[1].tolist() == [[0, 0], [0, 0]]
    out.sum().backward()
    assert table.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [1, 1]]
    for bad in (5, -1):
        with pytest.raises(ValueError, match=rf"expected numbers in 0 .. 4, the rows of f64\[5, 2\], got {bad}"):
            F.embedding(paddle.to_tensor([0, bad]), table)


def test_take_along_axis():
    x = paddle.to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert paddle.take_along_axis(x, paddle.to_tensor([[2, 0]]), -1).tolist() == [[3, 1], [6, 4]]
    for bad, first in ((3, 0), (-4, -3)):
        with pytest.raises(ValueError, match=f"expected numbers in {first} .. 2, along axis 1 of .*got {bad}"):
            paddle.take_along_axis(x, paddle.to_tensor([[bad], [0]]), 1)
    with pytest.raises(ValueError, match="expected indices of 2 dimensions"):
        paddle.take_along_axis(x, paddle.to_tensor([0]), 1)


# ------------------------------------------------------------------------------------------------ random numbers
def test_dropout():
    paddle.seed(3)
    x = paddle.ones([1000], "float64")
    y = F.dropout(x, 0.25)
    kept = y.numpy() != 0
    assert 0.70 < kept.mean() < 0.80 and set(y.numpy()[kept]) == {1 / 0.75}
    assert (F.dropout(x, 0.25).numpy() != y.numpy()).any()          # another draw
    paddle.seed(3)
    assert F.dropout(x, 0.25).tolist() == y.tolist()                # the same sequence
    assert F.dropout(x, 0.0) is x and F.dropout(x, 0.5, training=False) is x
    assert F.dropout(x, 1.0).numpy().max() == 0
    assert F.dropout(x, 0.25, training=False, mode="downscale_in_infer").numpy().max() == 0.75
    with pytest.raises(ValueError, match=r"probability p in \[0, 1\], got 1.5"):
        F.dropout(x, 1.5)


def test_dropout_of_low_precision_scales_in_float32():
    """1 / 0.9 rounded to bfloat16 first would be off by 0.2 %."""
    paddle.seed(0)
    x = paddle.full([256], 100.0, "bfloat16")
    y = F.dropout(x, 0.1).numpy()
    assert set(y[y != 0].tolist()) == {float(ml_dtypes.bfloat16(np.float32(100) / np.float32(0.9)))}


def test_random_tensors():
    paddle.seed(7)
    first = paddle.randn([4, 5])
    assert first.shape == [4, 5] and first.dtype == paddle.float32
    assert paddle.randn([4, 5]).tolist() != first.tolist()
    paddle.seed(7)
    assert paddle.randn([4, 5]).tolist() == first.tolist()
    u = paddle.uniform([1000], min=-2.0, max=3.0).numpy()
    assert u.min() >= -2 and u.max() < 3
    assert paddle.uniform([3], seed=5).tolist() == paddle.uniform([3], seed=5).tolist()


def test_labels_out_of_range():
    logits = paddle.zeros([2, 3])
    for bad in (3, -1):
        with pytest.raises(ValueError, match=f"expected labels in 0 .. 2 or ignore_index=-100, got {bad}"):
            paddle.cross_entropy_with_softmax(logits, paddle.to_tensor([[-100], [bad]]))
