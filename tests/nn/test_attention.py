"""Attention against numpy: one query and one head at a time."""

import numpy as np
import pytest

import minipd as paddle
from minipd.nn.functional import scaled_dot_product_attention as attention
from tests.nn.finite import check_gradients

rng = np.random.default_rng(5)


def by_numpy(q, k, v, mask=None, causal=False, scale=None):
    b, sq, heads, dim = q.shape
    sk, group = k.shape[1], heads // k.shape[2]
    mask = np.zeros((b, heads, sq, sk)) if mask is None else np.broadcast_to(mask, (b, heads, sq, sk))
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for n in range(b):
        for h in range(heads):
            for i in range(sq):
                scores = k[n, :, h // group] @ q[n, i, h] * (dim ** -0.5 if scale is None else scale) + mask[n, h, i]
                if causal:
                    scores = np.where(np.arange(sk) <= i, scores, -np.inf)
                if np.isfinite(scores).any():
                    p = np.exp(scores - scores.max())
                    out[n, i, h] = p / p.sum() @ v[n, :, h // group]
    return out


def inputs(heads=4, kv_heads=4, sq=3, sk=5, dim=6, b=2):
    return rng.normal(size=(b, sq, heads, dim)), *rng.normal(size=(2, b, sk, kv_heads, dim))


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", [None, "additive", "bool", "per key"])
def test_values(kv_heads, causal, mask):
    q, k, v = inputs(kv_heads=kv_heads)
    additive = {None: None, "additive": rng.normal(size=(2, 4, 3, 5)),
                "bool": np.where(rng.uniform(size=(2, 1, 3, 5)) > 0.4, 0.0, -np.inf),
                "per key": np.where(rng.uniform(size=(5,)) > 0.4, 0.0, -np.inf)}[mask]
    given = additive if mask == "additive" or mask is None else additive == 0
    out = attention(*map(paddle.to_tensor, (q, k, v)), None if given is None else paddle.to_tensor(given),
                    is_causal=causal)
    np.testing.assert_allclose(out.numpy(), by_numpy(q, k, v, additive, causal), rtol=1e-12, atol=1e-14)


def test_gradients():
    q, k, v = inputs(heads=4, kv_heads=2, sq=3, sk=3, dim=2)
    check_gradients(lambda *qkv: attention(*qkv, is_causal=True), q, k, v)
    check_gradients(lambda q, k, v, m: attention(q, k, v, m, scale=0.3), q, k, v, rng.normal(size=(1, 4, 3, 3)))


@pytest.mark.parametrize("kind", ["bool", "additive"])
def test_a_query_that_sees_nothing_gets_zeros(kind):
    """softmax of a row of -inf is NaN, and 0 times NaN would poison the shared weights (pytorch #41508)."""
    q, k, v = inputs(sq=3, sk=3)
    seen = np.tril(np.ones((3, 3), bool))
    seen[1] = False
    mask = seen if kind == "bool" else np.where(seen, 0.0, -np.inf)
    tensors = [paddle.to_tensor(a, stop_gradient=False) for a in (q, k, v)]
    out = attention(*tensors, paddle.to_tensor(mask))
    assert not out.numpy()[:, 1].any() and out.numpy()[:, [0, 2]].all()
    np.testing.assert_allclose(out.numpy(), by_numpy(q, k, v, np.where(seen, 0.0, -np.inf)), rtol=1e-12)
    out.sum().backward()
    assert all(np.isfinite(t.grad.numpy()).all() for t in tensors)
    assert not tensors[0].grad.numpy()[:, 1].any()
    check_gradients(lambda *qkv: attention(*qkv, paddle.to_tensor(mask)), q, k, v)


def test_weights_are_exact_where_nothing_is_seen():
    """What is masked weighs exactly 0, also beside very negative scores, in every dtype."""
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        q = paddle.full([1, 2, 1, 1], -100.0, dtype)
        v = paddle.to_tensor([[[[1.0]], [[1000.0]]]], dtype)
        assert attention(q, paddle.ones([1, 2, 1, 1], dtype), v, is_causal=True)[0, 0].item() == 1.0


def test_dropout_is_on_the_weights():
    paddle.seed(2)
    q, k = paddle.zeros([1, 1, 1, 2]), paddle.zeros([1, 1000, 1, 2])
    v = paddle.ones([1, 1000, 1, 2])
    out = attention(q, k, v, dropout_p=0.5).numpy()
    assert out[0, 0, 0, 0] == out[0, 0, 0, 1] and 0 < abs(out[0, 0, 0, 0] - 1) < 0.15
    assert attention(q, k, v, dropout_p=0.5, training=False).numpy() == pytest.approx(1.0, abs=1e-4)


def test_shapes_that_do_not_fit():
    q, k, v = map(paddle.to_tensor, inputs(heads=4, kv_heads=3))
    with pytest.raises(ValueError, match=r"H a multiple of Hkv, got f64\[2, 3, 4, 6\], f64\[2, 5, 3, 6\]"):
        attention(q, k, v)
    q, k, v = map(paddle.to_tensor, inputs(heads=4, kv_heads=2))
    with pytest.raises(ValueError, match="enable_gqa is off"):
        attention(q, k, v, enable_gqa=False)
