"""Attention with a mask becomes `fused_dot_product_attention`, which never holds the matrix of scores.

    >>> from minipd.nn.functional import softmax
    >>> from minipd.passes.show import before_after, show
    >>> def attend(q, k, v, mask):
    ...     return softmax(q.matmul(k, transpose_y=True) / 2.0 + mask).matmul(v)
    >>> heads = (1, 2, 5, 4)
    >>> show(before_after("fused_dot_product_attention_pass", attend, heads, heads, heads, (5, 5)))
    before
      a = matmul(q, k, transpose_y=True)
      b = divide(a, 2.0)
      c = add(b, mask)
      d = softmax(c, axis=3)
      e = matmul(d, v)
      return e
    after
      a = transpose(q, perm=(0, 2, 1, 3))
      b = transpose(k, perm=(0, 2, 1, 3))
      c = transpose(v, perm=(0, 2, 1, 3))
      d = fused_dot_product_attention(a, b, c, mask, scaling_factor=0.5, zeros=False)
      e = transpose(d, perm=(0, 2, 1, 3))
      return e

Otherwise as in `fused_flash_attn_pass`.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.passes.drr import drr
from minipd.passes.facts import is_finite_mask, is_visible
from minipd.passes.formula import ops
from minipd.passes.library.attention import FORMS, SCALED, combinations, fits, is_lowest, turned
from minipd.passes.library.fused_flash_attn import TurnedTwice, repeated, repeats
from minipd.passes.pattern import add_rule

__all__: list[str] = []

NAME = "fused_dot_product_attention_pass"


def broadcasts(mask: Any, q: Any, k: Any, dtype: Any) -> bool:
    """Whether it is a mask of this dtype for the scores [B, H, Sq, Sk]."""
    shape = (*q.shape[:3], k.shape[2])
    return mask.dtype == dtype and mask.ndim <= 4 and all(
        same(m, 1) or same(m, s) for m, s in zip(mask.shape[::-1], shape[::-1], strict=False))


def added(form: str, scaled: str) -> type:
    """softmax(scale q k^T + mask) v."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class MaskAdded:
        def source(q, k, v, mask, *, axis, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            return weighted(ops.softmax(written(scores(q, k, shapes), c) + mask, axis=axis), v, shapes)

        def constraint(q, k, v, mask, axis, c, s0, s1, s2, s3):
            return broadcasts(mask, q, k, q.dtype) and fits(form, q, k, v, axis, c, (s0, s1, s2, s3))

        def result(q, k, v, mask, c):
            return turned(ops.fused_dot_product_attention(turned(q), turned(k), turned(v), mask,
                                                          scaling_factor=factor(c), zeros=False))
    return MaskAdded


def hidden(form: str, scaled: str) -> type:
    """softmax(scale q k^T where a bool mask holds, and a number elsewhere) v."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class MaskHides:
        def source(q, k, v, mask, *, axis, low, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            seen = ops.where(mask, written(scores(q, k, shapes), c), low)
            return weighted(ops.softmax(seen, axis=axis), v, shapes)

        def constraint(q, k, v, mask, axis, c, s0, s1, s2, s3):
            return broadcasts(mask, q, k, dtypes.bool.np) and fits(form, q, k, v, axis, c, (s0, s1, s2, s3))

        def result(q, k, v, mask, c, low):
            return turned(ops.fused_dot_product_attention(turned(q), turned(k), turned(v), mask,
                                                          scaling_factor=factor(c), hidden=low, zeros=False))
    return MaskHides


def zeroed(form: str, scaled: str) -> type:
    """The same, where a query that sees nothing gets zeros: `scaled_dot_product_attention` with a bool mask."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class MaskZeroes:
        def source(q, k, v, mask, visible, *, axis, low, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            weights = ops.softmax(ops.where(mask, written(scores(q, k, shapes), c), low), axis=axis)
            return weighted(weights * visible, v, shapes)

        def constraint(q, k, v, mask, visible, axis, low, c, s0, s1, s2, s3):
            return (is_lowest(low) and is_visible(visible, mask) and broadcasts(mask, q, k, dtypes.bool.np)
                    and fits(form, q, k, v, axis, c, (s0, s1, s2, s3)))

        def result(q, k, v, mask, c):
            return turned(ops.fused_dot_product_attention(turned(q), turned(k), turned(v), mask,
                                                          scaling_factor=factor(c)))
    return MaskZeroes


def added_and_zeroed(form: str, scaled: str) -> type:
    """The same for a mask that is added, and hides where it is -inf."""
    scores, weighted = FORMS[form]
    written, factor = SCALED[scaled]

    class MaskAddedZeroes:
        def source(q, k, v, mask, seen, visible, *, axis, low, c=1.0, s0=None, s1=None, s2=None, s3=None):
            shapes = (s0, s1, s2, s3)
            sums = written(scores(q, k, shapes), c) + mask
            return weighted(ops.softmax(ops.where(seen, sums, low), axis=axis) * visible, v, shapes)

        def constraint(q, k, v, mask, seen, visible, axis, low, c, s0, s1, s2, s3):
            return (is_lowest(low) and is_finite_mask(seen, mask) and is_visible(visible, seen)
                    and broadcasts(mask, q, k, q.dtype) and fits(form, q, k, v, axis, c, (s0, s1, s2, s3)))

        def result(q, k, v, mask, c):
            return turned(ops.fused_dot_product_attention(turned(q), turned(k), turned(v), mask,
                                                          scaling_factor=factor(c)))
    return MaskAddedZeroes


for _form, _scaled in combinations():
    for _make in added, hidden, zeroed, added_and_zeroed:
        _rule = _make(_form, _scaled)
        _rule.__name__ += _form + _scaled
        drr(NAME)(_rule)


# ------------------------------------------------------------------------------------------------ and around it
add_rule(NAME, TurnedTwice)     # type: ignore[arg-type]    # (a rule, by its decorator)


@drr(NAME)
class ScaledQueries:
    """attention(q c, k, v)."""

    def source(q, k, v, mask, *, c, scale, low, zeros):
        return ops.fused_dot_product_attention(q * c, k, v, mask, scaling_factor=scale, hidden=low, zeros=zeros)

    def result(q, k, v, mask, c, scale, low, zeros):
        return ops.fused_dot_product_attention(q, k, v, mask, scaling_factor=scale * c, hidden=low, zeros=zeros)


@drr(NAME)
class ScaledQueriesHeadsFirst:
    """The same, with the scaling before the heads are turned."""

    def source(q, k, v, mask, *, c, scale, low, zeros):
        return ops.fused_dot_product_attention(turned(q * c), k, v, mask, scaling_factor=scale, hidden=low,
                                               zeros=zeros)

    def result(q, k, v, mask, c, scale, low, zeros):
        return ops.fused_dot_product_attention(turned(q), k, v, mask, scaling_factor=scale * c, hidden=low,
                                               zeros=zeros)


@drr(NAME)
class RepeatedHeads:
    """attention(q, copies of k, copies of v): the operator needs no copies."""

    def source(q, k, v, mask, *, wide_k, flat_k, wide_v, flat_v, scale, low, zeros):
        return ops.fused_dot_product_attention(q, repeated(k, wide_k, flat_k), repeated(v, wide_v, flat_v), mask,
                                               scaling_factor=scale, hidden=low, zeros=zeros)

    def constraint(k, v, wide_k, flat_k, wide_v, flat_v):
        return repeats(k, wide_k, flat_k) and repeats(v, wide_v, flat_v)

    def result(q, k, v, mask, scale, low, zeros):
        return ops.fused_dot_product_attention(q, turned(k), turned(v), mask, scaling_factor=scale, hidden=low,
                                               zeros=zeros)
