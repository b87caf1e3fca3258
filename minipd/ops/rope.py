"""Rotary position embedding as one operator."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import exact_div, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.joining import concat
from minipd.ops.shapes import require_floating, stretches
from minipd.ops.slicing import Slice

__all__: list[str] = []

NAME = "fused_rotary_position_embedding"


@op(NAME)
class FusedRotaryPositionEmbedding:
    """Pair i of each head, (x[i], x[i + d/2]), turned by its angle.   (Su et al. 2021, RoFormer, section 3.2.2)

    x [..., S, d], cos and sin [S, d/2] (or what broadcasts to x's halves) -> [..., S, d].
    cos and sin may also be [S, d]: a place's own number, x cos + (-b, a) sin for x = (a, b), as many models write it.

    Paddle's operator of this name takes q, k and v at once, with sin and cos repeated to [1, S, 1, d], and its default
    style pairs neighbours (x[2i], x[2i + 1]).  This is one of its calls with `use_neox_rotary_style=False`: the halves
    of a head are paired, as in Llama's published weights, and each tensor is a call.
    """

    def infer_meta(x, cos, sin):
        require_floating(NAME, x)
        half = _half_shape(x)
        target = tuple(x.shape) if is_full(x, cos) and is_full(x, sin) else half
        if any(t.dtype != x.dtype or not stretches(NAME, t.shape, target) for t in (cos, sin)):
            raise ValueError(f"{NAME}: expected cos and sin of x's dtype that broadcast to its halves, {list(half)}, "
                             f"or both to all of it, got {describe(cos)} and {describe(sin)} for x {describe(x)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, cos, sin):
        out = xp.empty(x.shape, x.dtype)
        _rotate(xp, out, x, cos, sin)
        return out

    def kernel_out(xp, out, x, cos, sin):
        _rotate(xp, out, x, cos, sin)

    def vjp_x(g, cos, sin):             # a rotation's transpose turns back
        if is_full(g.payload, sin.payload):             # with the sines of the other half
            a, b = halves(sin)
            sin = concat([b, a], sin.ndim - 1)
        return FusedRotaryPositionEmbedding(g, cos, -sin)

    def vjp_cos(g, x, cos: Meta):
        if is_full(x.payload, cos):
            return reduce_to(g * x, cos)
        (ga, gb), (a, b) = halves(g), halves(x)
        return reduce_to(ga * a + gb * b, cos)

    def vjp_sin(g, x, sin: Meta):
        if is_full(x.payload, sin):
            return reduce_to(g * quarter_turned(x), sin)
        (ga, gb), (a, b) = halves(g), halves(x)
        return reduce_to(gb * a - ga * b, sin)


def _rotate(xp: Any, out: Any, x: Any, cos: Any, sin: Any) -> None:
    """(a cos - b sin, b cos + a sin) as x [cos, cos] + [b, a] [-sin, sin]: rows as they lie, which is twice as fast as
    half by half."""
    half = x.shape[-1] // 2
    if is_full(x, cos):
        first, second = sin[..., :half], sin[..., half:]
    else:
        cos, first = (xp.broadcast_to(t, (*t.shape[:-1], half)) for t in (cos, sin))
        cos, second = xp.concatenate([cos, cos], axis=-1), first
    xp.multiply(x, cos, out=out)
    swapped = xp.concatenate([x[..., half:], x[..., :half]], axis=-1)
    swapped *= xp.concatenate([-first, second], axis=-1)
    out += swapped


def _half_shape(x: Any) -> tuple:
    if not x.shape:
        raise ValueError(f"{NAME}: expected x [..., S, d], got a 0-D tensor")
    return (*x.shape[:-1], exact_div(x.shape[-1], 2, NAME))


def is_full(x: Any, t: Any) -> bool:
    """Whether cos or sin has a number for each place of a head, not for each pair."""
    return bool(t.shape) and not same(x.shape[-1], 1) and same(t.shape[-1], x.shape[-1])


def quarter_turned(x: Tensor) -> Tensor:
    """(-b, a) for x = (a, b)."""
    a, b = halves(x)
    return concat([-b, a], x.ndim - 1)


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """The two halves of the last dimension."""
    last, d = x.ndim - 1, x.payload.shape[-1]
    half = exact_div(d, 2, NAME)
    return Slice(x, axes=(last,), starts=(0,), ends=(half,)), Slice(x, axes=(last,), starts=(half,), ends=(d,))
