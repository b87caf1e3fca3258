"""Rules of attention: images of a batch and heads are independent.

What a query sums over (keys, and the elements of a head) is whole, as in Paddle: the scores, which the parts of the
operator would add up, are larger than what is gathered.  With a bias it runs by these parts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from minipd.dist.spmd.notation import Notation, letters_onto, shape_of
from minipd.dist.spmd.reshape import same_cuts
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same

__all__: list[str] = []


def _heads(q: Any, k: Any, bias: tuple[str, ...], parts: str) -> Notation:
    """q [b, s, h, d], k [b, t, h, d], v [b, t, h, e] -> [b, s, h, e].

    Several query heads share a key head: then heads are split where both are cut alike.
    """
    heads, shared = q.shape[2], k.shape[2]

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        return letter != "h" or same(heads, shared) or same_cuts(heads, 1, shared, heads // shared, ways)

    return Notation(("bshd", "bthd", "bthe", *bias), ("bshe",), decompose=parts, splits=splits)


@spmd("flash_attn")
def flash_attn(q: Any, k: Any, v: Any, *, scale: float = 1.0, causal: bool = False) -> Notation:
    return replace(_heads(q, k, (), ""), whole="stde")


@spmd("fused_dot_product_attention")
def fused_dot_product_attention(q: Any, k: Any, v: Any, bias: Any, *, scaling_factor: float = 1.0,
                                hidden: float = -math.inf, zeros: bool = True) -> Notation:
    """bias broadcasts to the scores, [b, h, s, t]."""
    sizes = (q.shape[0], q.shape[2], q.shape[1], k.shape[1])
    return _heads(q, k, (letters_onto(shape_of(bias), sizes, "bhst"),), "td")
