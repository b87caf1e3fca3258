"""Attention as one operator, whose kernel never holds the matrix of scores.

The scores of a few queries at a time, against all keys that they may see, are computed, turned into weights and
multiplied with the values while they are near the processor.  (Rabe, Staats 2021; Dao et al. 2022, with whole rows of
scores instead of running maxima: a row is short beside a core's cache.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import exact_div, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.activation import softmax
from minipd.ops.cast import cast
from minipd.ops.creation import Arange
from minipd.ops.fused.composition import pullback
from minipd.ops.linalg import Matmul
from minipd.ops.logic import greater_equal, greater_than
from minipd.ops.math import where
from minipd.ops.shapes import require_floating, shapes_agree, stretches

__all__: list[str] = []

#: bytes of scores that are held at once
AT_ONCE = 1 << 20
#: e^LARGE is far from where float32 ends, and so is its inverse
LARGE = 60.0
#: queries whose scores are computed together at least: matrix products want some
FEWEST = 32
#: and at most, where a causal mask lets the first ones see few keys
FEW = 128


# --------------------------------------------------------------------------------------- what it is made of
def composed_flash_attn(q: Tensor, k: Tensor, v: Tensor, *, scale: float = 1.0, causal: bool = False) -> Tensor:
    """softmax(scale q k^T) v, per head."""
    return _weighted(softmax(_seen_scores(q, k, scale, causal)), v, q)


def composed_masked_attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, *, scaling_factor: float = 1.0,
                              hidden: float = -math.inf, zeros: bool = True) -> Tensor:
    """softmax(scale q k^T + bias) v, or with `hidden` where a bool mask hides a key."""
    scores, seen = _scores(q, k, scaling_factor), bias
    if bias.payload.dtype == dtypes.bool.np:
        if not zeros:
            return _weighted(softmax(where(bias, scores, hidden)), v, q)
    else:
        scores = scores + bias
        if not zeros:
            return _weighted(softmax(scores), v, q)
        seen = greater_than(bias, -math.inf)
    lowest = float(dtypes.finfo(scores.payload.dtype).min) / 2
    weights = softmax(where(seen, scores, lowest)) * cast(seen, scores.dtype)
    return _weighted(weights, v, q)


def _heads(x: Tensor, heads: int) -> Tensor:
    """[B, S, heads * n, D] as [B, heads, n, S, D]."""
    b, s, h, d = x.payload.shape
    return x.reshape([b, s, heads, exact_div(h, heads, "attention"), d]).transpose([0, 2, 3, 1, 4])


def _scores(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """[B, H, Sq, Sk]"""
    b, sq, h, _ = q.payload.shape
    sk, kv = k.payload.shape[1:3]
    return Matmul(_heads(q, kv) * scale, _heads(k, kv), transpose_y=True).reshape([b, h, sq, sk])


def _seen_scores(q: Tensor, k: Tensor, scale: float, causal: bool) -> Tensor:
    scores = _scores(q, k, scale)
    if not causal:
        return scores
    rows, columns = (Arange(start=0, stop=n, step=1, dtype=dtypes.int64.np) for n in scores.payload.shape[2:])
    return where(greater_equal(rows.unsqueeze(-1), columns), scores, float(dtypes.finfo(scores.payload.dtype).min) / 2)


def _weighted(weights: Tensor, v: Tensor, q: Tensor) -> Tensor:
    """The values under their weights, [B, Sq, H, D]."""
    b, sq, h, _ = q.payload.shape
    sk, kv, d = v.payload.shape[1:]
    parts = weights.reshape([b, kv, exact_div(h, kv, "attention"), sq, sk])
    return Matmul(parts, _heads(v, kv)).transpose([0, 3, 1, 2, 4]).reshape([b, sq, h, d])


# ------------------------------------------------------------------------------------------------- the rows
def _shape(what: str, q: Any, k: Any, v: Any) -> Meta:
    require_floating(what, q)
    shapes = [tuple(x.shape) for x in (q, k, v)]
    fits = all(len(s) == 4 for s in shapes) and q.dtype == k.dtype == v.dtype and (
        shapes_agree(k.shape[:3], v.shape[:3], f"{what}: key and value")
        and shapes_agree((q.shape[0], q.shape[3]), (k.shape[0], k.shape[3]), f"{what}: query and key"))
    if not fits:
        raise ValueError(f"{what}: expected q [B, Sq, H, D], k [B, Sk, Hkv, D] and v [B, Sk, Hkv, Dv] of one dtype, "
                         f"got {', '.join(map(describe, (q, k, v)))}")
    if not (same(q.shape[2], 0) and same(k.shape[2], 0)):          # a rank may have no heads
        exact_div(q.shape[2], k.shape[2], f"{what}: the heads of q {describe(q)} for each of k {describe(k)}")
    return Meta((*q.shape[:3], v.shape[3]), q.dtype)


@op("flash_attn")
class FlashAttn:
    """softmax(scale q k^T) v, per head.   q [B, Sq, H, D], k [B, Sk, Hkv, D], v [B, Sk, Hkv, Dv] -> [B, Sq, H, Dv]

    H / Hkv query heads share a key head.  causal: query i sees keys 0 .. i.
    Paddle's operator runs on GPUs, scales by 1 / sqrt(D), and may drop weights; it keeps what its gradient needs.
    """

    def infer_meta(q, k, v, *, scale=1.0, causal=False):
        return _shape("flash_attn", q, k, v)

    def kernel(xp, q, k, v, *, scale=1.0, causal=False):
        out = xp.empty((*q.shape[:3], v.shape[3]), q.dtype)
        _attend(xp, out, q, k, v, None, scale, causal)
        return out

    def kernel_out(xp, out, q, k, v, *, scale=1.0, causal=False):
        _attend(xp, out, q, k, v, None, scale, causal)

    def vjp(g, q, k, v, scale, causal):
        return pullback(composed_flash_attn, g, q, k, v, scale=scale, causal=causal)


@op("fused_dot_product_attention")
class FusedDotProductAttention:
    """softmax(scaling_factor q k^T + bias) v, per head; shapes as in `flash_attn`, bias broadcasts to [B, H, Sq, Sk].

    bias: floats to add; or bool, True where a query sees a key: what it does not see gets the score `hidden`.
    zeros: a query that sees no key (everything is -inf, or False) gets zeros.  Else it gets what softmax makes of its
    scores: NaN where they all are -inf.
    """

    def infer_meta(q, k, v, bias, *, scaling_factor=1.0, hidden=-math.inf, zeros=True):
        what = "fused_dot_product_attention"
        out = _shape(what, q, k, v)
        scores = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
        if bias.dtype not in (dtypes.bool.np, q.dtype) or not stretches(what, tuple(bias.shape), scores):
            raise ValueError(f"{what}: expected a bias of q's dtype, or bool, that broadcasts to the scores "
                             f"{list(scores)}, got {describe(bias)}")
        return out

    def kernel(xp, q, k, v, bias, *, scaling_factor=1.0, hidden=-math.inf, zeros=True):
        out = xp.empty((*q.shape[:3], v.shape[3]), q.dtype)
        _attend(xp, out, q, k, v, bias, scaling_factor, False, hidden, zeros)
        return out

    def kernel_out(xp, out, q, k, v, bias, *, scaling_factor=1.0, hidden=-math.inf, zeros=True):
        _attend(xp, out, q, k, v, bias, scaling_factor, False, hidden, zeros)

    def vjp(g, q, k, v, bias, scaling_factor, hidden, zeros):
        return pullback(composed_masked_attention, g, q, k, v, bias, scaling_factor=scaling_factor, hidden=hidden,
                        zeros=zeros)


# ------------------------------------------------------------------------------------------------- the kernel
def _attend(xp: Any, out: Any, q: Any, k: Any, v: Any, bias: Any, scale: float, causal: bool,
            hidden: float = -math.inf, zeros: bool = True) -> None:
    if not out.size:
        return
    b, sk, kv = k.shape[:3]
    sq, group = q.shape[1], q.shape[2] // kv
    if not sk:
        out[...] = 0
        return

    def per_head(x: Any) -> Any:
        return x.reshape(b, x.shape[1], kv, x.shape[2] // kv, x.shape[3]).transpose(0, 2, 3, 1, 4)
    whole = out if out.flags.c_contiguous else xp.empty(out.shape, out.dtype)
    q, k, v, made = per_head(q), per_head(k), per_head(v), per_head(whole)
    if bias is not None:
        bias = xp.broadcast_to(bias, (b, kv * group, sq, sk)).reshape(b, kv, group, sq, sk)
    k = k.swapaxes(3, 4)
    for some, heads, rows in _tiles(b, kv, group * sk * out.itemsize, sq, causal):
        keys = slice(0, min(rows.stop, sk) if causal else sk)
        queries = q[some, heads, :, rows] * q.dtype.type(scale)

        def scored(some: slice = some, heads: slice = heads, rows: slice = rows, keys: slice = keys,
                   queries: Any = queries) -> Any:
            scores = xp.matmul(queries, k[some, heads, ..., keys])
            if causal:
                _hide_later(xp, scores, rows.start)
            elif bias is not None:
                _apply_mask(xp, scores, bias[some, heads, :, rows], hidden)
            return scores
        weights, total = _weigh(xp, scored, zeros and bias is not None)
        xp.true_divide(xp.matmul(weights, v[some, heads, :, keys]), total[..., None], out=made[some, heads, :, rows])
    if whole is not out:
        out[...] = whole


def _weigh(xp: Any, scored: Callable[[], Any], zeros: bool) -> tuple[Any, Any]:
    """(e^(score - something), their sums) for rows of scores, which `scored` computes.

    That something is 0 where no e^score overflows, and no sum is next to nothing: a maximum over everything is sooner
    there than one for each row.  zeros: where all scores of a row are -inf, both are 0, and the sum is taken for 1.
    """
    scores = scored()
    if scores.max() < LARGE:
        xp.exp(scores, out=scores)
        total = xp.einsum("...i->...", scores)
        if total.min() > math.exp(-LARGE):
            return scores, total
        scores = scored()
    highest = xp.maximum.reduce(scores, axis=-1, keepdims=True)
    if zeros:
        highest[highest == -math.inf] = 0
    scores -= highest
    xp.exp(scores, out=scores)
    total = xp.einsum("...i->...", scores)
    if zeros:
        total[total == 0] = 1
    return scores, total


def _tiles(batch: int, heads: int, row_bytes: int, rows: int, causal: bool) -> Iterator[tuple[slice, slice, slice]]:
    """Parts of batch, key heads and queries whose scores take about AT_ONCE bytes: as many heads as fit with all their
    queries, or a few queries of one head."""
    few = min(rows, FEW if causal and rows > 2 * FEW else rows, max(FEWEST, AT_ONCE // row_bytes))
    at_once = max(1, AT_ONCE // (row_bytes * few))
    several = max(1, at_once // heads)
    together = min(heads, at_once)
    for b in range(0, batch, several):
        for h in range(0, heads, together):
            for i in range(0, rows, few):
                yield slice(b, b + several), slice(h, h + together), slice(i, min(i + few, rows))


def _hide_later(xp: Any, scores: Any, first: int) -> None:
    """-inf for keys behind the query's own place; the queries are those from `first` on."""
    rows, columns = scores.shape[-2:]
    if columns > first + 1:
        later = xp.arange(first, columns) > xp.arange(first, first + rows)[:, None]
        most = xp.where(later, scores.dtype.type(-math.inf), scores.dtype.type(math.inf))
        part = scores[..., first:]
        xp.minimum(part, most, out=part)                # several times as fast as a masked copy


def _apply_mask(xp: Any, scores: Any, bias: Any, hidden: float) -> None:
    if bias.dtype == dtypes.bool.np:
        xp.copyto(scores, scores.dtype.type(hidden), where=~bias)
    else:
        scores += bias
