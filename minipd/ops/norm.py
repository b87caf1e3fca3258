"""Normalisation as one operator.

`rms_norm` is what the rules of `minipd.passes` make of the composed form.  `standardize` serves all that take off a
mean: layer, group, instance and batch normalisation differ only in the dimensions they standardise over, and in what
they do with the statistics (`minipd.nn.functional.norm`).
"""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.ops.broadcast import expand_as, reduce_to
from minipd.ops.cast import cast, widened
from minipd.ops.elementary import rsqrt
from minipd.ops.math import square
from minipd.ops.reduce import Mean, count, mean_of
from minipd.ops.shapes import reduced_shape, require_floating, shapes_agree

__all__: list[str] = []


@op("rms_norm")
class RmsNorm:
    """x / sqrt(mean(x^2) + epsilon) * scale over the last dimensions, those of `scale`.   (Zhang, Sennrich 2019)

    x [..., *n], scale [*n] -> [..., *n].  Low precision is computed in float32 and rounded once.

    Paddle's operator names the dimensions in an attribute `normalized_shape` (read off `scale` here, so that it holds
    for shards and symbols) and returns the inverse deviations too; the gradient here reckons them again, which costs
    one pass over x that it makes anyhow, and keeps nothing.
    """

    def infer_meta(x, scale, *, epsilon=1e-5):
        require_floating("rms_norm", x)
        n = len(scale.shape)
        if n == 0 or scale.dtype != x.dtype or not shapes_agree(x.shape[-n:], scale.shape, "rms_norm"):
            raise ValueError("rms_norm: expected a scale of x's dtype with the sizes of x's last dimensions, got "
                             f"{describe(scale)} for x {describe(x)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, scale, *, epsilon=1e-5):
        out = xp.empty(x.shape, x.dtype)
        _normalize(xp, out, x, scale, epsilon)
        return out

    def kernel_out(xp, out, x, scale, *, epsilon=1e-5):
        _normalize(xp, out, x, scale, epsilon)

    def vjp(g, x, scale, epsilon):      # with r = (mean(x^2) + epsilon)^(-1/2), n = x r, h = g scale:
        axis = tuple(range(x.ndim - scale.ndim, x.ndim))
        g, wide, s = widened(g), widened(x), widened(scale)
        r = rsqrt(Mean(square(wide), axis=axis, keepdim=True) + epsilon)
        n, h = wide * r, g * s
        dx = r * (h - n * Mean(h * n, axis=axis, keepdim=True))         # d/dx = r (h - n mean(h n))
        return cast(dx, x.dtype), cast(reduce_to(g * n, s), x.dtype)    # d/dscale = g n, summed over the rows


def _normalize(xp: Any, out: Any, x: Any, scale: Any, epsilon: float) -> None:
    """The squares are summed without being stored; the result is written in one pass, and scaled in place."""
    if not x.size:
        return
    rows = x.reshape(-1, scale.size)
    r = xp.einsum("ri,ri->r", rows, rows)
    r /= x.dtype.type(scale.size)
    r += x.dtype.type(epsilon)
    xp.sqrt(r, out=r)
    xp.reciprocal(r, out=r)
    xp.multiply(x, r.reshape(x.shape[:x.ndim - scale.ndim] + (1,) * scale.ndim), out=out)
    out *= scale


@op("standardize", Trait.MULTI)
class Standardize:
    """out = (x - mean) / sqrt(variance + epsilon), with mean and variance over `axis`, kept at size 1.

    The variance divides by the number of elements.  One row, because the composed form would keep three tensors of x's
    size for the gradient, and this keeps one, its result; that is also what the scale that follows needs.
    """

    outputs = ("out", "mean", "variance")

    def infer_meta(x, *, axis, epsilon=1e-5):
        require_floating("standardize", x)
        one = Meta(reduced_shape(x.shape, axis, True), x.dtype)
        return Meta(x.shape, x.dtype), one, one

    def kernel(xp, x, *, axis, epsilon=1e-5):
        return _standardize(xp, x, axis, epsilon)

    def kernel_out(xp, out, x, *, axis, epsilon=1e-5):
        _standardize(xp, x, axis, epsilon, *out)

    def vjp_x(gs, x: Meta, out, variance, axis, epsilon):
        g, g_mean, g_variance = gs      # with r = (variance + epsilon)^(-1/2), so that x - mean = out / r:
        r = rsqrt(variance + epsilon)
        parts = []
        if g is not None:               # r (g - mean(g) - out mean(g out))
            parts.append(r * (g - Mean(g, axis=axis, keepdim=True) - out * Mean(g * out, axis=axis, keepdim=True)))
        if g_mean is not None:
            parts.append(expand_as(g_mean / count(x, axis), x))
        if g_variance is not None:      # 2 (x - mean) / n
            parts.append(out * (g_variance * 2.0 / (r * count(x, axis))))
        return sum(parts[1:], parts[0])


def _standardize(xp: Any, x: Any, axis: tuple, epsilon: float, out: Any = None, mean: Any = None,
                 variance: Any = None) -> tuple[Any, Any, Any]:
    mean = mean_of(xp, x, axis, True, mean)
    out = xp.subtract(x, mean, out=out)
    variance = mean_of(xp, xp.square(out), axis, True, variance)
    r = variance + x.dtype.type(epsilon)
    xp.sqrt(r, out=r)
    xp.reciprocal(r, out=r)
    return xp.multiply(out, r, out=out), mean, variance
