"""How programs spell attention: the parts that the rules of `fused_flash_attn_pass` and
`fused_dot_product_attention_pass` are put together from.

    softmax(scaled(scores(q, k)) under a mask) times v, with heads first: q, k, v [B, H, S, D]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from minipd.framework.dim import same
from minipd.passes.facts import has_digits
from minipd.passes.formula import ops

__all__: list[str] = []

HEADS_FIRST = (0, 2, 1, 3)


def turned(x: Any) -> Any:
    """[B, H, S, D] as [B, S, H, D], and back."""
    return ops.transpose(x, perm=HEADS_FIRST)


class Form(NamedTuple):
    """scores(q, k, shapes), weighted(weights, v, shapes): the two products.  shapes: of reshapes in between."""

    scores: Callable[[Any, Any, tuple], Any]
    weighted: Callable[[Any, Any, tuple], Any]


FORMS = {
    "": Form(lambda q, k, s: ops.matmul(q, k, transpose_y=True),
             lambda w, v, s: ops.matmul(w, v)),
    "Transposed": Form(lambda q, k, s: ops.matmul(q, ops.transpose(k, perm=(0, 1, 3, 2))),
                       lambda w, v, s: ops.matmul(w, v)),
    # query heads that share a key head, one below the other: how `scaled_dot_product_attention` does it
    "Grouped": Form(lambda q, k, s: ops.reshape(ops.matmul(ops.reshape(q, shape=s[0]), k, transpose_y=True),
                                                shape=s[1]),
                    lambda w, v, s: ops.reshape(ops.matmul(ops.reshape(w, shape=s[2]), v), shape=s[3])),
}


class Scaled(NamedTuple):
    """written(scores, c), and the factor that c means."""

    written: Callable[[Any, Any], Any]
    factor: Callable[[float], float]


SCALED = {
    "": Scaled(lambda s, c: s, lambda c: 1.0),
    "Times": Scaled(lambda s, c: s * c, lambda c: c),
    "ByScale": Scaled(lambda s, c: ops.scale(s, scale=c, bias=0.0, bias_after_scale=True), lambda c: c),
    "Divided": Scaled(lambda s, c: s / c, lambda c: 1.0 / c),
}


def fits(form: str, q: Any, k: Any, v: Any, axis: int, c: float, shapes: tuple) -> bool:
    """Whether the parts are attention: [B, H, Sq, D] x [B, Hkv, Sk, D] x [B, Hkv, Sk, Dv], softmax over keys,
    and the scores scaled by a number that queries can be scaled by as well."""
    if not (has_digits(c, q) and q.ndim == k.ndim == v.ndim == 4 and axis == 3 and q.dtype == k.dtype == v.dtype):
        return False
    (b, h, sq, d), (kb, kv, sk, kd), (vb, vh, vs, vd) = q.shape, k.shape, v.shape
    if not all(map(same, (b, d, b, kv, sk), (kb, kd, vb, vh, vs))):
        return False
    if form != "Grouped":
        return same(h, kv)
    if not isinstance(h, int) or not isinstance(kv, int) or h % kv:
        return False
    tall = h // kv * sq
    return shapes == ((b, kv, tall, d), (b, h, sq, sk), (b, kv, tall, sk), (b, h, sq, vd))


def is_lowest(number: float) -> bool:
    """Whether a score weighs exactly nothing beside any other that a program has."""
    return number < -1e30 and not math.isinf(number)


def combinations() -> list[tuple[str, str]]:
    """(form, scaled) as they occur together."""
    return [(form, scaled) for form in FORMS for scaled in SCALED if form != "Grouped" or not scaled]
