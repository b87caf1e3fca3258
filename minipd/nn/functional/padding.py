"""Padding."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.geometry import FORMATS, ints
from minipd.ops.padding import Pad, pad_axis
from minipd.ops.slicing import take_part

__all__ = ["pad", "zeropad2d"]

MODES = ("constant", "reflect", "replicate", "circular")


@whole
def pad(x: Tensor, pad: Any, mode: str = "constant", value: float = 0.0, data_format: str | None = None,
        pad_from_left_axis: bool = True, name: str | None = None) -> Tensor:
    """x with more elements before and after it along some dimensions.

    pad: pairs (before, after), the first for the last spatial dimension of `data_format` ("NCL", "NHWC", ...; channels
    first unless given), the next for the one before it.  With mode "constant" there may be more: pairs for every
    dimension of x stand in the order of the dimensions if `pad_from_left_axis`, others, whatever the format, from the
    last one.  Negative ones cut off ("constant").
    mode: "constant" takes `value`, "reflect" mirrors at the edge, "replicate" repeats the edge, "circular" goes on at
    the other end; all but "constant" pad spatial dimensions only.
    Raises: ValueError for a mode, format or number of pairs that does not fit x, or if there is too little to mirror.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[[1.0, 2.0, 3.0]]])
    >>> pad(x, [2, 1]).tolist(), pad(x, [2, 1], mode="reflect").tolist()
    ([[[0.0, 0.0, 1.0, 2.0, 3.0, 0.0]]], [[[3.0, 2.0, 1.0, 2.0, 3.0, 2.0]]])
    >>> pad(x, [0, 0, 0, 1, 0, 0]).shape, pad(x, [0, 0, 0, 1, 0, 0], pad_from_left_axis=False).shape
    (paddle.Size([1, 2, 3]), paddle.Size([1, 2, 3]))
    """
    if mode not in MODES:
        raise ValueError(f"pad: expected mode {', '.join(map(repr, MODES[:-1]))} or {MODES[-1]!r}, got {mode!r}")
    given = ints("pad", "pad", pad)
    if len(given) % 2 or len(given) > 2 * x.ndim:
        raise ValueError(f"pad: expected pairs (before, after) for at most {x.ndim} dimensions of x "
                         f"{describe(x.payload)}, got {list(given)}")
    inner = _spatial(x, data_format)
    if mode == "constant" and len(given) == 2 * x.ndim and pad_from_left_axis:
        axes = list(range(x.ndim))
    else:
        axes = list(reversed(inner if len(given) <= 2 * len(inner) else range(x.ndim)))
    each = {a: given[2 * i:2 * i + 2] for i, a in enumerate(axes[:len(given) // 2])}
    if mode == "constant":
        return _constant(x, each, value)
    if x.ndim not in (3, 4, 5) or any(any(p) for a, p in each.items() if a not in inner):
        raise ValueError(f"pad: expected x of 3 to 5 dimensions, and padding of its spatial dimensions only, in mode "
                         f"{mode!r}, got {list(given)} for x {describe(x.payload)}")
    for axis, (before, after) in sorted(each.items()):
        if before < 0 or after < 0:
            raise ValueError(f"pad: expected padding of at least 0 in mode {mode!r}, got {list(given)}")
        x = pad_axis(x, axis, before, after, mode)
    return x


def _spatial(x: Tensor, data_format: str | None) -> list[int]:
    """The dimensions that a data_format has besides batch and channels; for x of other ranks, all."""
    n = x.ndim - 2
    if n not in FORMATS:
        return list(range(x.ndim))
    if data_format is not None and data_format not in FORMATS[n]:
        raise ValueError(f"pad: expected data_format {' or '.join(map(repr, FORMATS[n]))} for x {describe(x.payload)}, "
                         f"got {data_format!r}")
    start = 1 if data_format == FORMATS[n][1] else 2
    return list(range(start, start + n))


def _constant(x: Tensor, each: dict, value: float) -> Tensor:
    cut = {a: (max(-b, 0), max(-e, 0)) for a, (b, e) in each.items() if b < 0 or e < 0}
    for axis, (before, after) in cut.items():
        n = x.payload.shape[axis]
        if before + after > n:
            raise ValueError(f"pad: cannot cut {before} and {after} elements off axis {axis} of {describe(x.payload)}")
        x = take_part(x, [axis], [(before, n - after, 1)])
    paddings = [0] * (2 * x.ndim)
    for axis, (before, after) in each.items():
        paddings[2 * axis:2 * axis + 2] = max(before, 0), max(after, 0)
    return Pad(x, paddings=tuple(paddings), pad_value=float(value)) if any(paddings) else x


def zeropad2d(x: Tensor, padding: Any, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """An image with zeros around it: padding = [left, right, top, bottom].

    >>> from minipd.ops.creation import ones
    >>> zeropad2d(ones([1, 1, 1, 1]), [1, 0, 0, 1]).tolist()
    [[[[0.0, 1.0], [0.0, 0.0]]]]
    """
    return pad(x, padding, "constant", 0.0, data_format)
