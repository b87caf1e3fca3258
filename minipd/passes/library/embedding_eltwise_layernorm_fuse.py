"""The layer norm of a sum of two or three embeddings becomes one operator.

    >>> from minipd.nn.functional import embedding, layer_norm
    >>> from minipd.passes import PassManager
    >>> from minipd.passes.show import before_after, show
    >>> def begin(ids, places, words, positions, scale, shift):
    ...     return layer_norm(embedding(ids, words) + embedding(places, positions), 8, scale, shift)
    >>> specs = "i64[2, 5]", "i64[1, 5]", "f32[9, 8]", "f32[5, 8]", "f32[8]", "f32[8]"
    >>> show(before_after("embedding_eltwise_layernorm_fuse_pass", begin, *specs))
    before
      a = embedding(ids, words)
      b = embedding(places, positions)
      c = add(a, b)
      d, _, _ = standardize(c, axis=(2,))
      e = multiply(d, scale)
      f = add(e, shift)
      return f
    after
      a = fused_embedding_eltwise_layernorm(shift, scale, ids, words, places, positions)
      return a

Rounds otherwise.
"""

from __future__ import annotations

from typing import Any

from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.library.layer_norm_fuse import LayerNorm
from minipd.passes.pattern import add_rule

__all__: list[str] = []

NAME = "embedding_eltwise_layernorm_fuse_pass"


def wide(scale: Any) -> bool:
    """Whether the norm goes over the rows of the tables."""
    return scale.ndim == 1


def of_two(i: Any, v: Any, j: Any, w: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    return ops.fused_embedding_eltwise_layernorm(bias, scale, i, v, j, w, epsilon=epsilon)


def of_three(h: Any, u: Any, i: Any, v: Any, j: Any, w: Any, scale: Any, bias: Any, epsilon: float) -> Any:
    return ops.fused_embedding_eltwise_layernorm(bias, scale, h, u, i, v, j, w, epsilon=epsilon)


@drr(NAME, benefit=2)
class TwoEmbeddings:
    """layer_norm(v[i] + w[j])."""

    def source(i, v, j, w, scale, bias, *, epsilon):
        return ops.layer_norm(ops.embedding(i, v) + ops.embedding(j, w), scale, bias, epsilon=epsilon)

    constraint, result = wide, of_two


@drr(NAME, benefit=3)
class ThreeEmbeddings:
    """layer_norm((u[h] + v[i]) + w[j])."""

    def source(h, u, i, v, j, w, scale, bias, *, epsilon):
        total = (ops.embedding(h, u) + ops.embedding(i, v)) + ops.embedding(j, w)
        return ops.layer_norm(total, scale, bias, epsilon=epsilon)

    constraint, result = wide, of_three


@drr(NAME, benefit=2)
class TwoEmbeddingsSkipped:
    """The same where `add_norm_fuse_pass` has been."""

    def source(i, v, j, w, scale, bias, *, epsilon):
        return ops.skip_layernorm(ops.embedding(i, v), ops.embedding(j, w), scale, bias, epsilon=epsilon)

    constraint, result = wide, of_two


@drr(NAME, benefit=3)
class ThreeEmbeddingsSkipped:
    """Likewise."""

    def source(h, u, i, v, j, w, scale, bias, *, epsilon):
        first = ops.embedding(h, u) + ops.embedding(i, v)
        return ops.skip_layernorm(first, ops.embedding(j, w), scale, bias, epsilon=epsilon)

    constraint, result = wide, of_three


add_rule(NAME, LayerNorm)       # type: ignore[arg-type]    # (a rule, by its decorator): the pass needs no other before it
