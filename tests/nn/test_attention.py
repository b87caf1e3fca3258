"""Attention against numpy: one query and one head at a time."""

import numpy as np
import pytest

import minipd as paddle
from minipd.nn import functional as F
from minipd.nn.functional import flash_attention as flash
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


def test_a_batch_of_one():
    q, k, v = map(paddle.to_tensor, inputs(b=1))
    np.testing.assert_array_equal(attention(q[0], k[0], v[0]).numpy(), attention(q, k, v)[0].numpy())


# ------------------------------------------------------------------------------------------------ as fused kernels
def test_flash_attention_returns_the_weights_when_asked():
    q, k, v = inputs(kv_heads=2)
    out, nothing = flash.flash_attention(*map(paddle.to_tensor, (q, k, v)), causal=True)
    assert nothing is None
    np.testing.assert_allclose(out.numpy(), by_numpy(q, k, v, causal=True), rtol=1e-12)
    _, weights = flash.flash_attention(*map(paddle.to_tensor, (q, k, v)), causal=True, return_softmax=True)
    assert weights.shape == [2, 4, 3, 5] and not np.triu(weights.numpy(), 1).any()
    np.testing.assert_allclose(weights.numpy().sum(-1), 1)
    half = flash.flash_attention(*map(paddle.to_tensor, (q, k, v)), softmax_scale=0.5)[0]
    np.testing.assert_allclose(half.numpy(), by_numpy(q, k, v, scale=0.5), rtol=1e-12)


def test_packed():
    qkv = rng.normal(size=(2, 5, 4, 3, 6))                  # 2 query heads for each of 3 key heads
    out, _ = F.flash_attn_qkvpacked(paddle.to_tensor(qkv), causal=True)
    q = qkv[:, :, :2].reshape(2, 5, 6, 6)
    np.testing.assert_allclose(out.numpy(), by_numpy(q, qkv[:, :, 2], qkv[:, :, 3], causal=True), rtol=1e-12)
    with pytest.raises(ValueError, match=r"flash_attn_qkvpacked: expected qkv \[B, S, G \+ 2, Hkv, D\] with G >= 1"):
        F.flash_attn_qkvpacked(paddle.ones([2, 5, 2, 3, 6]))


@pytest.mark.parametrize("causal", [False, True])
def test_sequences_one_behind_the_other(causal):
    """Of unequal numbers of queries and keys the last ones meet, as in FlashAttention 2.1 and later."""
    q_at, k_at = [0, 2, 3, 6], [0, 3, 5, 8]
    q, k, v = rng.normal(size=(6, 4, 3)), *rng.normal(size=(2, 8, 2, 3))
    out, weights = flash.flash_attn_unpadded(*map(paddle.to_tensor, (q, k, v, q_at, k_at)), 3, 3, 0.5, causal=causal,
                                             return_softmax=True)
    for (a, b), (c, d) in zip(zip(q_at[:-1], q_at[1:], strict=True), zip(k_at[:-1], k_at[1:], strict=True),
                              strict=True):
        mask = np.where(np.tri(b - a, d - c, d - c - (b - a)), 0.0, -np.inf) if causal else None
        want = by_numpy(q[None, a:b], k[None, c:d], v[None, c:d], mask, scale=0.5)[0]
        np.testing.assert_allclose(out.numpy()[a:b], want, rtol=1e-12)
    assert weights.shape == [4, 6, 8]
    qkv = np.stack([k, k, v], 1)
    packed, _ = F.flash_attn_varlen_qkvpacked(*map(paddle.to_tensor, (qkv, k_at, k_at)), 3, 3, 0.5, causal=causal)
    alone, _ = flash.flash_attn_unpadded(*map(paddle.to_tensor, (k, k, v, k_at, k_at)), 3, 3, 0.5, causal=causal)
    np.testing.assert_allclose(packed.numpy(), alone.numpy(), rtol=1e-12)


def dense(indices, rows, causal):
    """The mask as a matrix, an element at a time, as Paddle's documentation says it: 0 or -inf [B, Hkv, rows, Sk]."""
    b, heads, columns, n = indices.shape
    mask = np.zeros((b, heads, rows, columns))
    for at in np.ndindex(b, heads, rows, columns):
        i, bounds = at[2], indices[at[0], at[1], at[3]]
        if causal:
            hidden = i < at[3] or bounds[0] <= i < (bounds[1] if n == 2 else rows)
        elif n == 2:
            hidden = i >= bounds[0] or i < bounds[1]
        else:
            hidden = bounds[0] <= i < bounds[1] or bounds[2] <= i < bounds[3]
        mask[at] = -np.inf if hidden else 0
    return mask


@pytest.mark.parametrize("causal, n", [(True, 1), (True, 2), (False, 2), (False, 4)])
@pytest.mark.parametrize("heads", [1, 2])
def test_masks_as_intervals_of_rows(causal, n, heads):
    q, k, v = inputs(kv_heads=2, sq=6, sk=6)
    indices = np.sort(rng.integers(0, 7, size=(2, heads, 6, n)), -1)
    if n == 2 and not causal:
        indices = indices[..., ::-1].copy()
    mask = np.repeat(dense(indices, 6, causal), 4 // heads, 1)
    out, lse = F.flashmask_attention(*map(paddle.to_tensor, (q, k, v)), paddle.to_tensor(indices, "int32"),
                                     causal=causal, return_softmax_lse=True)
    np.testing.assert_allclose(out.numpy(), by_numpy(q, k, v, mask), rtol=1e-11, atol=1e-13)
    scores = np.einsum("bihd,bjhd->bhij", q, np.repeat(k, 2, 2)) / 6 ** 0.5 + mask
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(lse.numpy(), np.log(np.exp(scores).sum(-1)), rtol=1e-11)


def test_windows_and_blocks():
    q, k, v = inputs(sq=5, sk=5)
    given = list(map(paddle.to_tensor, (q, k, v)))
    near = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    for size, causal, seen in ((1, False, near <= 1), (2, True, (near <= 2) & np.tri(5, dtype=bool)),
                               ((0, -1), False, np.triu(np.ones((5, 5), bool))), (None, True, np.tri(5, dtype=bool))):
        out = F.flashmask_attention(*given, window_size=size, causal=causal)
        np.testing.assert_allclose(out.numpy(), by_numpy(q, k, v, np.where(seen, 0, -np.inf)), rtol=1e-11)
    many = paddle.ones([1, 130, 1, 2])
    v = paddle.arange(130.0).reshape([1, 130, 1, 1])
    out = F.flashmask_attention(many, many, v, block_mask=paddle.to_tensor([[[[1, 0], [0, 1]]]], "int32"))
    assert out[0, 0, 0, 0].item() == pytest.approx(63.5) and out[0, 129, 0, 0].item() == pytest.approx(128.5)
    indices = paddle.zeros([2, 1, 5, 1], "int32")
    for call, message in (
            (lambda: F.flashmask_attention(*given, indices), r"int \[B, 4 or 1, 5, 2 or 4\], got i32\[2, 1, 5, 1\]"),
            (lambda: F.flashmask_attention(*given, indices, causal=True, window_size=1), "or window_size, got both"),
            (lambda: F.flashmask_attention(*given, return_seed_offset=True), "there is no seed to return"),
            (lambda: F.sdp_kernel(False, False, False).__enter__(), "at least one kernel to be enabled")):
        with pytest.raises(ValueError, match=message):
            call()
    with F.sdp_kernel(enable_math=True):
        pass


def test_keys_in_compressed_rows():
    q, k, v = (rng.normal(size=(2, 2, 4, 3)) for _ in range(3))
    offset = np.broadcast_to([0, 2, 2, 5, 6], (2, 2, 5))
    columns = np.stack([[[1, 3, 0, 1, 2, 3], [0, 0, 3, 2, 1, 1]]] * 2)        # a key may come twice
    mask = np.full((2, 2, 4, 4), -np.inf)
    for b, h, i in np.ndindex(2, 2, 4):
        mask[b, h, i, columns[b, h, offset[b, h, i]:offset[b, h, i + 1]]] = 0
    padding = np.array([[1, 1, 1, 0], [1, 1, 1, 1]])
    order = [0, 2, 1, 3]
    for given, hidden in (({}, mask), ({"key_padding_mask": paddle.to_tensor(padding)},
                                       np.where(padding[:, None, None] == 0, -np.inf, mask))):
        out = F.sparse_attention(*map(paddle.to_tensor, (q, k, v, offset.copy(), columns)), **given)
        want = by_numpy(*(x.transpose(order) for x in (q, k, v)), hidden).transpose(order)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-12)
    assert not out.numpy()[:, :, 1].any(), "this query sees nothing"
    with pytest.raises(ValueError, match=r"sparse_csr_offset \[B, H, S \+ 1\] and sparse_csr_columns"):
        F.sparse_attention(*map(paddle.to_tensor, (q, k, v, columns, columns)))
