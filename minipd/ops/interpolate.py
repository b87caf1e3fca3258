"""Interpolation along one axis: each result is a weighted sum of a few elements, its taps.

Interpolation of images is this along one axis after the other: bilinear is linear twice, bicubic cubic twice.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.ops.bins import Bins, along, sums, take
from minipd.ops.broadcast import as_operand
from minipd.ops.shapes import require_floating

__all__: list[str] = []

#: (place of the tap for each result, its weight for each result)
Tap = tuple[tuple[int, ...], tuple[float, ...]]


@op("interp", Trait.ALLOCATES)
class Interp:
    """x resampled to `size` elements along `axis`; mode "nearest", "linear" or "cubic" (see `taps`)."""

    def infer_meta(x, *, axis, size, mode, align_corners=False, align_mode=1, scale=0.0, antialias=False):
        if mode != "nearest":
            require_floating("interp", x)
        return Meta((*x.shape[:axis], size, *x.shape[axis + 1:]), x.dtype)

    def kernel(xp, x, *, axis, size, **how):
        total = None
        for places, weights in taps(x.shape[axis], size, **how):
            part = take(xp, x, axis, places)
            if how["mode"] != "nearest":
                part = part * along(xp, weights, x.ndim, axis, x.dtype)
            total = part if total is None else total + part
        return xp.array(total)

    def vjp_x(g, x: Meta, axis, mode, align_corners, align_mode, scale, antialias):
        return InterpGrad(g, as_operand(x), axis=axis, mode=mode, align_corners=align_corners, align_mode=align_mode,
                          scale=scale, antialias=antialias)


@op("interp_grad", Trait.ALLOCATES)
class InterpGrad:
    """The adjoint of interp, in the shape of `like`: every tap's share is added where the tap is."""

    def infer_meta(g, like: Meta, *, axis, mode, align_corners=False, align_mode=1, scale=0.0, antialias=False):
        return Meta(like.shape, g.dtype)

    def kernel(xp, g, like, *, axis, **how):
        total = None
        for places, weights in taps(like.shape[axis], g.shape[axis], **how):
            share = g if how["mode"] == "nearest" else g * along(xp, weights, g.ndim, axis, g.dtype)
            part = sums(xp, share, axis, _runs(places, like.shape[axis]))
            total = part if total is None else total + part
        return total

    def vjp_g(gg, g: Meta, axis, mode, align_corners, align_mode, scale, antialias):
        return Interp(gg, axis=axis, size=g.shape[axis], mode=mode, align_corners=align_corners,
                      align_mode=align_mode, scale=scale, antialias=antialias)


@functools.lru_cache(maxsize=256)
def taps(n: int, size: int, mode: str, align_corners: bool = False, align_mode: int = 1, scale: float = 0.0,
         antialias: bool = False) -> tuple[Tap, ...]:
    """What `size` results out of n elements are made of.  The places of one tap never fall from result to result.

    Result i lies at i (n - 1) / (size - 1) with align_corners; else at r i, or where align_mode is 0 (and for cubic
    always) at r (i + 1/2) - 1/2, with r = 1 / scale, or n / size if scale is 0.
    antialias: where the result is coarser, the weights are stretched by r, so that every element counts.

    >>> taps(2, 3, "linear", align_corners=True)
    (((0, 0, 1), (1.0, 0.5, 1.0)), ((1, 1, 1), (0.0, 0.5, 0.0)))
    """
    if align_corners:
        ratio = (n - 1) / max(size - 1, 1)
    else:
        ratio = 1 / scale if scale else n / size
    half = not align_corners and (align_mode == 0 or mode == "cubic" or antialias)
    last = n - 1
    if mode == "nearest":                           # in float32, as Paddle: where two are as near, that decides
        single = (np.float32(ratio) * np.float32(i) + np.float32(0.5 * align_corners) for i in range(size))
        return ((tuple(min(math.floor(x), last) for x in single), (1.0,) * size),)
    at = [ratio * (i + 0.5) - 0.5 if half else ratio * i for i in range(size)]
    stretch = max(ratio, 1.0) if antialias else 1.0
    weight, support = _triangle, 1
    if mode == "cubic":
        weight, support = functools.partial(_cubic, -0.5 if antialias else -0.75), 2
    if mode == "linear" and not antialias:
        at = [min(max(x, 0.0), float(last)) for x in at]
    reach = math.ceil(support * stretch)
    places, weights = [], []
    for x in at:
        around = [math.floor(x) + d for d in range(1 - reach, reach + 1)]
        found = [weight((p - x) / stretch) for p in around]
        if antialias:                               # what lies outside does not count; the rest makes up for it
            found = [w if 0 <= p <= last else 0.0 for p, w in zip(around, found, strict=True)]
            found = [w / sum(found) for w in found]
        places.append([min(max(p, 0), last) for p in around])
        weights.append(found)
    return tuple(zip(map(tuple, zip(*places, strict=True)), map(tuple, zip(*weights, strict=True)), strict=True))


def _triangle(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _cubic(a: float, x: float) -> float:
    """Cubic convolution.   (Keys 1981)"""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


@functools.lru_cache(maxsize=256)
def _runs(places: tuple[int, ...], n: int) -> Bins:
    """For each of n elements, the range of the results whose tap is there."""
    found, i = [], 0
    for j in range(n):
        start = i
        while i < len(places) and places[i] == j:
            i += 1
        found.append((start, i))
    return tuple(found)
