"""Cases of resampling along an axis, and of padding."""

import math
from fractions import Fraction

import numpy as np

from tests.ops.case import Case, cases


def position(i, n, size, mode, align_corners, align_mode, scale):
    """Where result i lies, in elements."""
    if align_corners:
        return i * (n - 1) / (size - 1) if size > 1 else 0.0
    ratio = 1 / scale if scale else n / size
    return ratio * (i + 0.5) - 0.5 if align_mode == 0 or mode == "cubic" else ratio * i


def keys(x):
    """Cubic convolution with a = -3/4, as its two polynomials, without rounding."""
    x = abs(Fraction(x))
    if x < 1:
        return float((5 * x**3 - 9 * x**2 + 4) / 4)
    return float((-3 * x**3 + 15 * x**2 - 24 * x + 12) / 4) if x < 2 else 0.0


def resampling(n, size, mode, align_corners=False, align_mode=1, scale=0.0, antialias=False):
    """The matrix [size, n] of the map."""
    a = np.zeros((size, n))
    for i in range(size):
        at = position(i, n, size, mode, align_corners, 0 if antialias else align_mode, scale)
        if mode == "nearest":
            a[i, min(math.floor(at + 0.5 * align_corners), n - 1)] = 1
        elif antialias:
            wide = max(n / size, 1.0)
            a[i] = [max(0.0, 1 - abs(j - at) / wide) for j in range(n)]
            a[i] /= a[i].sum()
        elif mode == "linear":
            low = math.floor(min(max(at, 0), n - 1))
            part = min(max(at, 0), n - 1) - low
            a[i, low] += 1 - part
            a[i, min(low + 1, n - 1)] += part
        else:
            for j in range(math.floor(at) - 1, math.floor(at) + 3):
                a[i, min(max(j, 0), n - 1)] += keys(at - j)
    return a


HOW = [
    ((5,), 0, 3, {"mode": "nearest"}), ((2, 3), 1, 7, {"mode": "nearest", "scale": 2.5}),
    ((4, 2), 0, 3, {"mode": "nearest", "align_corners": True}), ((2, 3, 2), 1, 5, {"mode": "linear"}),
    ((2, 3), 1, 6, {"mode": "linear", "align_mode": 0}), ((5,), 0, 2, {"mode": "linear", "align_corners": True}),
    ((3,), 0, 1, {"mode": "linear", "align_corners": True}), ((4, 1), 0, 9, {"mode": "linear", "scale": 2.3}),
    ((4,), 0, 7, {"mode": "cubic"}), ((2, 5), 1, 3, {"mode": "cubic", "align_corners": True}),
    ((7,), 0, 3, {"mode": "linear", "antialias": True}), ((1,), 0, 3, {"mode": "cubic"}),
    ((0, 2), 1, 3, {"mode": "linear"}),
]


@cases("interp")
def _(d):
    def want(x, axis, size, **how):
        return np.moveaxis(np.tensordot(resampling(x.shape[axis], size, **how), x, (1, axis)), 0, axis)

    for shape, axis, size, how in HOW:
        yield Case((d.floats(*shape),), want, {"axis": axis, "size": size, **how})


@cases("interp_grad")
def _(d):
    def want(g, like, axis, **how):
        return np.moveaxis(np.tensordot(resampling(like.shape[axis], g.shape[axis], **how), g, (0, axis)), 0, axis)

    for shape, axis, size, how in HOW:
        g = d.floats(*shape[:axis], size, *shape[axis + 1:])
        yield Case((g, np.zeros(shape)), want, {"axis": axis, **how}, wrt=(0,))


@cases("pad", "any")
def _(d):
    def want(x, paddings, pad_value=0.0):
        out = np.full([b + n + a for b, n, a in zip(paddings[::2], x.shape, paddings[1::2], strict=True)], pad_value,
                      x.dtype if x.dtype == bool else float)
        for at in np.ndindex(*x.shape):
            out[tuple(i + b for i, b in zip(at, paddings[::2], strict=True))] = x[at]
        return out

    for shape, paddings, value in (((3,), (2, 1), 0.0), ((2, 3), (0, 0, 1, 0), 2.0), ((), (), 0.0),
                                   ((2, 1, 2), (1, 0, 0, 0, 2, 1), 0.0), ((0, 2), (1, 0, 0, 0), 1.0),
                                   ((2, 0), (0, 1, 1, 1), 0.0)):
        yield Case((d.floats(*shape),), want, {"paddings": paddings} | ({"pad_value": value} if value else {}))
