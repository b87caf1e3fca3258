"""one_hot, sequence_mask and gather_tree."""

import numpy as np
import pytest

import minipd as paddle
from minipd.framework.context import MetaOnly, using
from minipd.framework.dim import symbol
from minipd.framework.meta import Meta
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F


def test_one_hot():
    x = np.array([[2, 0], [1, 1]])
    for dtype in ("int64", "int32", "uint8"):
        got = F.one_hot(paddle.to_tensor(x, dtype=dtype), 4)
        np.testing.assert_array_equal(got.numpy(), np.eye(4)[x])
        assert got.dtype == paddle.float32
    assert F.one_hot(paddle.to_tensor(x)).shape == [2, 2, 3]
    assert F.one_hot(paddle.to_tensor(1), paddle.to_tensor(2)).tolist() == [0.0, 1.0]
    assert F.one_hot(paddle.zeros([0], "int64"), 3).shape == [0, 3]
    for bad in (4, -1):
        with pytest.raises(ValueError, match=rf"one_hot: expected numbers in 0 \.\. 3, got {bad}"):
            F.one_hot(paddle.to_tensor([0, bad]), 4)
    with pytest.raises(TypeError, match="expected an int index, got f32"):
        F.one_hot(paddle.ones([2]), 2)


def test_sequence_mask():
    lengths = paddle.to_tensor([[3, 0], [1, 2]])
    want = np.arange(3) < lengths.numpy()[..., None]
    np.testing.assert_array_equal(F.sequence_mask(lengths).numpy(), want)
    assert F.sequence_mask(lengths).dtype == paddle.int64
    assert F.sequence_mask(lengths, maxlen=5, dtype="bool").shape == [2, 2, 5]
    assert F.sequence_mask(lengths, paddle.to_tensor(1), "float32").tolist() == [[[1.0], [0.0]], [[1.0], [1.0]]]


def test_gather_tree():
    """Against each path, traced back by hand."""
    rng = np.random.default_rng(0)
    ids, parents = rng.integers(0, 9, (4, 2, 3)), rng.integers(0, 3, (4, 2, 3))
    want = np.zeros_like(ids)
    for batch in range(2):
        for beam in range(3):
            at = beam
            for t in reversed(range(4)):
                want[t, batch, beam], at = ids[t, batch, at], parents[t, batch, at]
    np.testing.assert_array_equal(F.gather_tree(paddle.to_tensor(ids), paddle.to_tensor(parents)).numpy(), want)
    with pytest.raises(ValueError, match=r"of one shape \[time, batch, beam\]"):
        F.gather_tree(paddle.to_tensor(ids), paddle.to_tensor(parents[0]))


def test_shapes_of_symbols():
    with using(ground=MetaOnly()):
        x = Tensor(Meta((symbol("N"), 2), np.dtype("int64")))
        assert tuple(F.one_hot(x, 5).shape) == (symbol("N"), 2, 5)
        assert tuple(F.sequence_mask(x, 4).shape) == (symbol("N"), 2, 4)
        for call in (F.one_hot, F.sequence_mask):
            with pytest.raises(TypeError, match="reckoned"):
                call(x)
