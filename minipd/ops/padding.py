"""Padding: constant as an operator; the other modes join parts of the tensor itself."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic, require_at_least
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.joining import concat
from minipd.ops.slicing import Slice, take_part

__all__: list[str] = []


@op("pad", Trait.EXACT)
class Pad:
    """x with `pad_value` before and after it; paddings: (before, after) of the first dimension, then of the next."""

    def infer_meta(x, *, paddings, pad_value=0.0):
        return Meta(tuple(b + n + a for b, n, a in zip(paddings[::2], x.shape, paddings[1::2], strict=True)), x.dtype)

    def kernel(xp, x, *, paddings, pad_value=0.0):
        out = xp.empty(Pad.infer_meta(x, paddings=paddings).shape, x.dtype)
        _pad(xp, out, x, paddings, pad_value)
        return out

    def kernel_out(xp, out, x, *, paddings, pad_value=0.0):
        _pad(xp, out, x, paddings, pad_value)

    def vjp_x(g, x: Meta, paddings):
        before = paddings[::2]
        return Slice(g, axes=tuple(range(len(before))), starts=before,
                     ends=tuple(b + n for b, n in zip(before, x.shape, strict=True)))


def _pad(xp: Any, out: Any, x: Any, paddings: tuple, pad_value: Any) -> None:
    out[...] = xp.asarray(pad_value).astype(out.dtype)
    out[tuple(slice(b, b + n) for b, n in zip(paddings[::2], x.shape, strict=True))] = x


def pad_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """x with `before` and `after` more elements along an axis, which mode takes from x: "reflect", mirrored at the
    edge, without it; "replicate", the edge; "circular", from the other end, as often as needed.

    Raises: ValueError where there is nothing to take, or not enough to mirror.
    """
    if not before and not after:
        return x
    n = x.payload.shape[axis]
    least = max(before, after) + 1 if mode == "reflect" else max(before, after) if mode == "circular" else 1
    if is_symbolic(n):                      # circular: from the other end once, which is what a program can say
        require_at_least(n, least, f"pad: mode {mode!r} by {before} and {after} along axis {axis}")
    elif n == 0 or mode == "reflect" and n < least:
        what = "larger than the padding" if n else "that is not empty"
        raise ValueError(f"pad: expected a dimension {what} in mode {mode!r}, got padding {before} and {after} of axis "
                         f"{axis} of {describe(x.payload)}")

    def part(start: int, end: int, stride: int = 1) -> list[Tensor]:
        return [take_part(x, [axis], [(start, end, stride)])] if start != end else []

    if mode == "reflect":
        return concat([*part(before, 0, -1), x, *part(n - 2, n - 2 - after, -1)], axis)
    if mode == "replicate":
        return concat([*part(0, 1) * before, x, *part(n - 1, n) * after], axis)
    if is_symbolic(n):
        return concat([*part(n - before, n), x, *part(0, after)], axis)
    return concat([*part(n - before % n, n), *[x] * (before // n + 1 + after // n), *part(0, after % n)], axis)
