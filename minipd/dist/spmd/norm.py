"""Rules of normalisation and rotary embedding: rows go where they like, what is reduced or paired in one is whole."""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, broadcast, letters, replace
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same
from minipd.ops.rope import is_full

__all__: list[str] = []


@spmd("rms_norm")
def rms_norm(x: Any, scale: Any, *, epsilon: float = 1e-5) -> Notation:
    word = letters(len(x.shape))
    inner = word[len(word) - len(scale.shape):]
    return Notation((word, inner), (word,), whole=inner)


@spmd("layer_norm")
def layer_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Notation:
    word = letters(len(x.shape))
    inner = word[len(word) - len(scale.shape):]
    return Notation((word, inner, inner), (word,), whole=inner)


@spmd("standardize")
def standardize(x: Any, *, axis: tuple[int, ...], epsilon: float = 1e-5) -> Notation:
    """(out, mean, variance).  Over a split batch, dimension 0, the two means become sums and small all-reduces: the
    statistics are those of the whole batch, as in a synchronised batch normalisation.  (Of nothing there is no mean.)
    Within an image what is reduced is whole, as in Paddle.
    """
    word = letters(len(x.shape))
    small = "".join("1" if i in axis else letter for i, letter in enumerate(word))
    batch = word[:1] if 0 in axis and not any(same(d, 0) for d in x.shape) else ""
    return Notation((word,), (word, small, small), decompose=batch,
                    whole="".join(word[i] for i in axis if word[i] != batch))


@spmd("fused_rotary_position_embedding")
def fused_rotary_position_embedding(x: Any, cos: Any, sin: Any) -> Notation:
    """Halves of a head are paired, so the last dimension is whole; cos and sin have one of their own."""
    if is_full(x, cos) and is_full(x, sin):
        words, word = broadcast(x.shape, cos.shape, sin.shape)
        return Notation(words, (word,), whole=word[-1])
    half = (*x.shape[:-1], x.shape[-1] / 2)
    words, _ = broadcast(cos.shape, sin.shape, half)
    last = len(half) - 1
    angles = [word[:-1] + word[-1:].replace(letters(len(half))[last], "w") for word in words[:2]]
    word = replace(letters(len(half)), last, "z")
    return Notation((word, *angles), (word,), whole="zw")
