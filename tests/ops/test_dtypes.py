"""Which dtype a result has, and how low precision computes."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F

FLOAT_ORDER = ["bfloat16", "float32", "float64"]


def test_promotion_of_two_tensors():
    dtypes = {"bool": 0, "uint8": 1, "int8": 1, "int16": 2, "int32": 3, "int64": 4}
    for a, b in itertools.product([*dtypes, "float16", *FLOAT_ORDER], repeat=2):
        got = (paddle.ones([2], a) * paddle.ones([2], b)).dtype.name
        if a in dtypes and b in dtypes:
            want = np.promote_types(a, b).name
        elif {a, b} == {"float16", "bfloat16"}:
            want = "float32"
        elif a in dtypes or b in dtypes:
            want = b if a in dtypes else a
        else:
            want = max(a, b, key=lambda name: FLOAT_ORDER.index(name.replace("float16", "bfloat16").replace("bb", "b")))
        assert got == want, (a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_are_weak(dtype):
    x = paddle.ones([2], dtype)
    for y in (x + 1, 1 + x, x * 0.5, 2.0 / x, x - True, 2**x, x**2, paddle.maximum(x, 0.1),
              paddle.where(x > 0, x, 0.0)):
        assert y.dtype.name == dtype
    assert (2.0 / x).tolist() == [2, 2] and (2**x).tolist() == [2, 2] and (1 - x).tolist() == [0, 0]


def test_numbers_and_ints():
    x = paddle.to_tensor([1, 2])
    assert (x + 1).dtype == paddle.int64 and (x + 0.5).dtype == paddle.float32 and (x / 2).tolist() == [0.5, 1.0]
    assert (x / x).dtype == paddle.float32
    assert (paddle.to_tensor([True]) + 1).dtype == paddle.int64
    assert (paddle.to_tensor([200], "uint8") + 100).tolist() == [44]
    assert (-paddle.to_tensor([1], "uint8")).tolist() == [255]
    assert paddle.sum(paddle.to_tensor([True, True])).item() == 2
    assert paddle.sum(paddle.ones([300], "uint8")).item() == 300
    with pytest.raises(TypeError, match="scale: expected whole numbers for a tensor of int64, got scale=0.5"):
        paddle.scale(x, 0.5)
    with pytest.raises(TypeError, match="expected a floating or complex tensor, got i64"):
        paddle.mean(x)


@pytest.mark.parametrize("f", [paddle.exp, paddle.log, paddle.sqrt, paddle.rsqrt, paddle.tanh, paddle.sin, paddle.cos,
                               F.sigmoid, F.silu])
def test_functions_of_reals_make_floats_of_ints(f):
    got, want = f(paddle.to_tensor([1, 2])), f(paddle.to_tensor([1.0, 2.0]))
    assert got.dtype == paddle.float32 and got.tolist() == want.tolist()


def test_low_precision_rounds_once():
    """1 + 2^-9 + 2^-9 in bfloat16 (8 bits): each sum alone rounds back to 1, both at once do not."""
    small = 2.0**-9
    x = paddle.to_tensor(np.array([1.0, small, small, small, small], ml_dtypes.bfloat16))
    assert x.sum().item() == 1 + 2.0**-7
    h = paddle.to_tensor(np.array([60000.0, 60000.0], np.float16))
    assert h.mean().item() == 60000.0               # the sum alone would overflow


def test_gradients_keep_their_dtype():
    """Hard case A4: one contribution or several, 0-D or not."""
    for shape in ([], [2]):
        for dtype in ("float32", "bfloat16"):
            w = paddle.ones(shape, dtype)
            w.stop_gradient = False
            (w * w + w).sum().backward()
            assert w.grad.dtype.name == dtype and w.grad.shape == shape
