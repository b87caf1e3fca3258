"""Attention without a mask, or with a causal one, becomes `flash_attn`, which never holds the matrix of scores.

    >>> from minipd.nn.functional import scaled_dot_product_attention
    >>> from minipd.passes.show import before_after, show
    >>> def attend(q, k, v):
    ...     return scaled_dot_product_attention(q, k, v, is_causal=True)
    >>> show(before_after("fused_flash_attn_pass", attend, (1, 5, 2, 4), (1, 5, 2, 4), (1, 5, 2, 4)))
    before
      a = multiply(q, 0.5)
      b = transpose(a, perm=(0, 2, 1, 3))
      c = transpose(k, perm=(0, 2, 1, 3))
      d = matmul(b, c, transpose_y=True)
      e = arange(start=0, stop=5, step=1, dtype=int64)
      f = unsqueeze(e, axis=(1,))
      g = arange(start=0, stop=5, step=1, dtype=int64)
      h = greater_equal(f, g)
      i = where(h, d, -1.7014117331926443e+38)
      j = softmax(i, axis=3)
      l = transpose(v, perm=(0, 2, 1, 3))
      m = matmul(j, l)
      n = transpose(m, perm=(0, 2, 1, 3))
      return n
    after
      a = arange(start=0, stop=5, step=1, dtype=int64)
      b = unsqueeze(a, axis=(1,))
      c = arange(start=0, stop=5, step=1, dtype=int64)
      d = greater_equal(b, c)
      e = flash_attn(q, k, v, scale=0.5, causal=True)
      return e

Transpositions that meet are removed, a scale of the queries becomes the operator's, and keys that were copied for every
query head are read where they are.  Rounds otherwise.
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.facts import is_causal
from minipd.passes.formula import ops
from minipd.passes.library.attention import FORMS, SCALED, combinations, fits, is_lowest, turned

__all__: list[str] = []

NAME = "fused_flash_attn_pass"


def attention(form: str, scaled: str) -> type:
    """softmax(scale q k^T) v."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class Attention:
        def source(q, k, v, *, axis, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            return weighted(ops.softmax(written(scores(q, k, shapes), c), axis=axis), v, shapes)

        def constraint(q, k, v, axis, c, s0, s1, s2, s3):
            return fits(form, q, k, v, axis, c, (s0, s1, s2, s3))

        def result(q, k, v, c):
            return turned(ops.flash_attn(turned(q), turned(k), turned(v), scale=factor(c)))
    return Attention


def causal_attention(form: str, scaled: str) -> type:
    """softmax(scale q k^T where a query sees the key, and the lowest number elsewhere) v."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class CausalAttention:
        def source(q, k, v, seen, *, axis, low, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            hidden = ops.where(seen, written(scores(q, k, shapes), c), low)
            return weighted(ops.softmax(hidden, axis=axis), v, shapes)

        def constraint(q, k, v, seen, axis, low, c, s0, s1, s2, s3):
            return (is_causal(seen) and is_lowest(low) and seen.shape == (q.shape[2], k.shape[2])
                    and fits(form, q, k, v, axis, c, (s0, s1, s2, s3)))

        def result(q, k, v, c):
            return turned(ops.flash_attn(turned(q), turned(k), turned(v), scale=factor(c), causal=True))
    return CausalAttention


for _form, _scaled in combinations():
    for _rule in attention(_form, _scaled), causal_attention(_form, _scaled):
        _rule.__name__ += _form + _scaled
        drr(NAME)(_rule)


# ------------------------------------------------------------------------------------------------ and around it
@drr(NAME)
class TurnedTwice:
    """Heads first, and back."""

    def source(x):
        return turned(turned(x))

    def result(x):
        return x


@drr(NAME)
class ScaledQueries:
    """flash_attn(q c, k, v)."""

    def source(q, k, v, *, c, scale, causal):
        return ops.flash_attn(q * c, k, v, scale=scale, causal=causal)

    def result(q, k, v, c, scale, causal):
        return ops.flash_attn(q, k, v, scale=scale * c, causal=causal)


@drr(NAME)
class ScaledQueriesHeadsFirst:
    """The same, with the scaling before the heads are turned."""

    def source(q, k, v, *, c, scale, causal):
        return ops.flash_attn(turned(q * c), k, v, scale=scale, causal=causal)

    def result(q, k, v, c, scale, causal):
        return ops.flash_attn(turned(q), k, v, scale=scale * c, causal=causal)


def repeated(x: Any, wide: Any, flat: Any) -> Any:
    """Heads [B, Hkv, S, D] copied for every query head, [B, H, S, D], and turned."""
    return turned(ops.reshape(ops.expand(ops.unsqueeze(x, axis=(2,)), shape=wide), shape=flat))


def repeats(x: Any, wide: tuple, flat: tuple) -> bool:
    """Whether each head of x is copied as often as the others."""
    b, h, s, d = x.shape
    return len(wide) == 5 and wide == (b, h, wide[2], s, d) and flat == (b, h * wide[2], s, d)


@drr(NAME)
class RepeatedHeads:
    """flash_attn(q, copies of k, copies of v): the operator needs no copies."""

    def source(q, k, v, *, wide_k, flat_k, wide_v, flat_v, scale, causal):
        return ops.flash_attn(q, repeated(k, wide_k, flat_k), repeated(v, wide_v, flat_v), scale=scale, causal=causal)

    def constraint(k, v, wide_k, flat_k, wide_v, flat_v):
        return repeats(k, wide_k, flat_k) and repeats(v, wide_v, flat_v)

    def result(q, k, v, scale, causal):
        return ops.flash_attn(q, turned(k), turned(v), scale=scale, causal=causal)
