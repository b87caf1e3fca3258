"""float16 and bfloat16 store; sums are reckoned in float32 and rounded once."""

import numpy as np
import pytest

import minipd as paddle

RNG = np.random.default_rng(0)


def rounded(x, dtype):
    """float64 values as the nearest of `dtype`, in float64 again."""
    return paddle.to_tensor(np.asarray(x, np.float64)).astype(dtype).astype("float64").numpy()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("name", "want"), [
    ("sum", lambda x: x.sum(-1)), ("mean", lambda x: x.mean(-1)), ("logsumexp", lambda x: np.log(np.exp(x).sum(-1))),
    ("prod", lambda x: np.exp(np.log(x).sum(-1))), ("cumsum", lambda x: np.cumsum(x, -1)),
])
def test_reductions(name, want, dtype):
    """Of 3000 numbers, where a running sum of 11 (or 8) bits would stand still."""
    x = rounded(RNG.uniform(0.9, 1.1, (2, 3000)), dtype)
    got = getattr(paddle.to_tensor(x).astype(dtype), name)(-1)
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype("float64").numpy(), want(x), rtol=float(paddle.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", [
    lambda x, y: x @ y, lambda x, y: paddle.einsum("ij,jk->ik", x, y), lambda x, y: paddle.nn.functional.linear(x, y),
    lambda x, y: paddle.addmm(paddle.zeros([2, 3], x.dtype), x, y),
])
def test_products(call, dtype):
    x, y = (rounded(RNG.uniform(0.5, 1.0, shape), dtype) for shape in ((2, 2000), (2000, 3)))
    got = call(*(paddle.to_tensor(a).astype(dtype) for a in (x, y)))
    assert got.dtype == dtype
    np.testing.assert_allclose(got.astype("float64").numpy(), x @ y, rtol=float(paddle.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients(dtype):
    """The gradient of a broadcast operand is a sum too."""
    b = paddle.ones([1], dtype)
    b.stop_gradient = False
    (paddle.ones([3000, 1], dtype) * b).sum().backward()
    assert b.grad.dtype == dtype and b.grad.item() == rounded(3000, dtype)
