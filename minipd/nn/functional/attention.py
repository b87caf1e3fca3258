"""Attention, composed of matrix products and a softmax."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn.functional.dropout import dropout
from minipd.ops.activation import softmax
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.linalg import matmul
from minipd.ops.logic import logical_and
from minipd.ops.math import where
from minipd.ops.shapes import shapes_agree

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, training: bool = True,
                                 backend: str | None = None, scale: float | None = None, enable_gqa: bool = True,
                                 name: str | None = None) -> Tensor:
    """softmax(scale * query key^T + mask) value, per head.

    Args:
        query: [B, Sq, H, D].
        key, value: [B, Sk, Hkv, D]; H is a multiple of Hkv, and every H / Hkv query heads share one key head.
        attn_mask: broadcasts to [B, H, Sq, Sk]; bool, True where a query sees a key, or floats that are added.
        is_causal: query i sees keys 0 .. i.
        scale: 1 / sqrt(D) unless given.
        dropout_p: on the weights, while training.

    Shapes without the batch, [S, H, D], are a batch of one.

    Returns: [B, Sq, H, D].  A query that sees no key gets zeros, and finite (zero) gradients.
    Raises: ValueError for shapes that do not fit.
    """
    batched = query.ndim != 3
    q, k, v = (x if batched else x.unsqueeze(0) for x in (query, key, value))
    out = attend("scaled_dot_product_attention", q, k, v, attn_mask, is_causal, dropout_p, training, scale,
                 enable_gqa).out
    return out if batched else out.squeeze(0)


class Attended(NamedTuple):
    """What attention computes: the result [B, Sq, H, D], and the weights, after dropout, and scores it comes from, both
    [B, H, Sq, Sk]; what is masked has the lowest score."""

    out: Tensor
    weights: Tensor
    scores: Tensor


def attend(what: str, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False,
           dropout_p: float = 0.0, training: bool = True, scale: float | None = None,
           enable_gqa: bool = True) -> Attended:
    """Attention with what is on the way, in the name of the function `what`."""
    _check(what, query, key, value, enable_gqa)
    b, sq, heads, dim = query.shape
    sk, kv_heads = key.shape[1], key.shape[2]
    # The heads that share a key head stand one below the other, so that one product serves them all.
    grouped = heads != kv_heads
    q = (query * (1.0 / math.sqrt(dim) if scale is None else scale)).transpose([0, 2, 1, 3])    # [B, H, Sq, D]
    q = q.reshape([b, kv_heads, heads // kv_heads * sq, dim]) if grouped else q
    scores = matmul(q, key.transpose([0, 2, 1, 3]), transpose_y=True)
    scores = scores.reshape([b, heads, sq, sk]) if grouped else scores
    weights, scores = _masked_softmax(scores, mask, is_causal)
    if dropout_p:
        weights = dropout(weights, dropout_p, training=training)
    w = weights.reshape([b, kv_heads, heads // kv_heads * sq, sk]) if grouped else weights
    out = matmul(w, value.transpose([0, 2, 1, 3]))
    out = out.reshape([b, heads, sq, value.shape[3]]) if grouped else out
    return Attended(out.transpose([0, 2, 1, 3]), weights, scores)


def _masked_softmax(scores: Tensor, mask: Tensor | None, is_causal: bool) -> tuple[Tensor, Tensor]:
    """softmax over what the masks let through, and the masked scores.

    What they do not is the lowest finite number, not -inf: it weighs exactly 0 beside any other, and a row of nothing
    else stays finite; such a row, which only a given mask can make, is multiplied by 0 afterwards.
    """
    seen: Any = None
    if is_causal:
        sq, sk = scores.shape[-2:]
        seen = arange(sq).unsqueeze(-1) >= arange(sk)
    if mask is not None:
        allowed: Any = mask
        if mask.payload.dtype != dtypes.bool.np:
            scores, allowed = scores + cast(mask, scores.dtype), mask > -math.inf
        seen = allowed if seen is None else logical_and(seen, allowed)
    if seen is None:
        return softmax(scores), scores
    lowest = float(ml_dtypes.finfo(scores.payload.dtype).min) / 2
    scores = where(seen, scores, lowest)
    weights = softmax(scores)
    return weights if mask is None else weights * cast(seen, weights.dtype), scores


def _check(what: str, query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    q, k, v = (tuple(x.payload.shape) for x in (query, key, value))
    fits = (len(q) == len(k) == len(v) == 4 and shapes_agree(k[:3], v[:3], f"{what}: key and value")
            and shapes_agree((q[0], q[3]), (k[0], k[3]), f"{what}: query and key")
            and k[2] and q[3] and q[2] % k[2] == 0 and (enable_gqa or q[2] == k[2]))
    if not fits:
        raise ValueError(f"{what}: expected query [B, Sq, H, D] and key and value [B, Sk, Hkv, D], with D >= 1 and H a "
                         f"multiple of Hkv{'' if enable_gqa else ' (equal: enable_gqa is off)'}, got "
                         f"{describe(query.payload)}, {describe(key.payload)} and {describe(value.payload)}")
