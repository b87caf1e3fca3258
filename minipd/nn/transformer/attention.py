"""Multi-head attention as a layer, with caches for decoding step by step."""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.nn.common import Linear
from minipd.nn.functional.attention import attend
from minipd.nn.layer import Layer
from minipd.ops.creation import full
from minipd.ops.joining import concat

__all__ = ["MultiHeadAttention"]


class Cache(NamedTuple):
    """Keys and values of the steps so far, [B, H, S, D]; each call appends its own."""

    k: Tensor
    v: Tensor


class StaticCache(NamedTuple):
    """Keys and values of the whole of another sequence, [B, H, S, D], computed once."""

    k: Tensor
    v: Tensor


class MultiHeadAttention(Layer):
    """Queries look up values by keys, in `num_heads` projections at once.   (Vaswani et al. 2017, section 3.2)

    Args:
        embed_dim: of queries and results; a multiple of num_heads.
        dropout: on the weights, while training.
        kdim, vdim: the widths of keys and values; embed_dim unless given.
        need_weights: return the weights [B, num_heads, Sq, Sk] too.
        weight_attr, bias_attr: of all four projections.

    Called with (query [B, Sq, embed_dim], key [B, Sk, kdim], value [B, Sk, vdim], attn_mask=None, cache=None), it
    returns the result [B, Sq, embed_dim], or a tuple of it, the weights if they are needed, and the cache if one was
    given.  key and value are the query unless given.
    attn_mask: broadcasts to [B, num_heads, Sq, Sk]; bool or int, true where a query sees a key; or floats to add.
    cache: what `gen_cache` made.

    Raises: ValueError for widths that do not fit.

    >>> from minipd.ops.creation import ones
    >>> MultiHeadAttention(128, 2)(ones([2, 4, 128])).shape
    paddle.Size([2, 4, 128])
    """

    Cache, StaticCache = Cache, StaticCache

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, kdim: int | None = None,
                 vdim: int | None = None, need_weights: bool = False, weight_attr: Any = None, bias_attr: Any = None):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(f"MultiHeadAttention: expected embed_dim to be a positive multiple of num_heads, got "
                             f"embed_dim={embed_dim} and num_heads={num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr)

    def _heads(self, x: Tensor) -> Tensor:
        """[B, S, embed_dim] as [B, S, H, D]."""
        return x.reshape([x.shape[0], x.shape[1], self.num_heads, self.head_dim])

    def compute_kv(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of all heads, [B, H, S, D]."""
        return (self._heads(self.k_proj(key)).transpose([0, 2, 1, 3]),
                self._heads(self.v_proj(value)).transpose([0, 2, 1, 3]))

    def gen_cache(self, key: Tensor, value: Tensor | None = None, type: Any = Cache) -> Any:
        """A cache to start with.

        type StaticCache: the keys and values of `key` and `value` (`key` unless given), for attention to another
        sequence.  type Cache: without a value an empty one, for as many sequences as `key` has; with one, of these keys
        and values, [B, H, S, D].
        """
        if type is StaticCache:
            return StaticCache(*self.compute_kv(key, key if value is None else value))
        if value is not None:
            return Cache(key, value)
        shape = [key.shape[0], self.num_heads, 0, self.head_dim]
        return Cache(full(shape, 0, key.dtype), full(shape, 0, key.dtype))

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                attn_mask: Tensor | None = None, cache: Any = None) -> Any:
        key = query if key is None else key
        value = query if value is None else value
        q = self._heads(self.q_proj(query))
        if isinstance(cache, StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
            if cache is not None:
                cache = Cache(concat([cache.k, k], 2), concat([cache.v, v], 2))
                k, v = cache
        if attn_mask is not None and attn_mask.payload.dtype in dtypes.INTS:
            attn_mask = attn_mask != 0
        got = attend("MultiHeadAttention", q, k.transpose([0, 2, 1, 3]), v.transpose([0, 2, 1, 3]), attn_mask,
                     dropout_p=self.dropout, training=self.training)
        out = self.out_proj(got.out.reshape([query.shape[0], query.shape[1], self.embed_dim]))
        more = [got.weights] * self.need_weights + [cache] * (cache is not None)
        return (out, *more) if more else out
