"""The two halves of a head turned by their angles, and put together again, become one operator."""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []


@drr("fused_rotary_position_embedding_pass")
class RotaryPositionEmbedding:
    """[a cos - b sin, b cos + a sin] of the halves a, b of x's last dimension."""

    def source(x, cos, sin, *, axes, zero, half, end, last):
        a = ops.slice(x, axes=axes, starts=zero, ends=half)
        b = ops.slice(x, axes=axes, starts=half, ends=end)
        return ops.concat(a * cos - b * sin, b * cos + a * sin, axis=last)

    def constraint(x, cos, sin, axes, zero, half, end, last):
        d = x.shape[-1]
        halves = axes == (x.ndim - 1,) and last == x.ndim - 1 and zero == (0,) and end == (d,) and half[0] * 2 == d
        fits = x.ndim >= max(cos.ndim, sin.ndim) and x.dtype == cos.dtype == sin.dtype
        return halves and fits and all(
            s == 1 or s == n for t in (cos, sin)
            for s, n in zip(reversed(t.shape), reversed((*x.shape[:-1], half[0])), strict=False))

    def result(x, cos, sin):
        return ops.fused_rotary_position_embedding(x, cos, sin)
