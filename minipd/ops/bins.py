"""Bins: which elements of one dimension each result of a pooling folds.

Bin i is the range [start, end); starts and ends never fall from bin to bin.  Windows of one size and stride are bins,
and so are the uneven shares of adaptive pooling and the irregular ones of fractional pooling.  A pooling over several
dimensions folds one after the other, so all of pooling is folding bins along one axis.

The bins that contain element j are a range too.  So the adjoint of summing bins is summing bins, the `transposed` ones.
"""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.ops.geometry import count

__all__: list[str] = []

Bins = tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=1024)
def sliding(size: int, kernel: int, stride: int, before: int, after: int, ceil: bool) -> Bins:
    """Windows of `kernel` elements, one every `stride`, from `before` elements ahead of the first one; what lies in the
    padding is cut off, so that a bin may be empty.

    >>> sliding(5, 3, 2, 1, 1, False), sliding(5, 2, 2, 0, 0, True)
    (((0, 2), (1, 4), (3, 5)), ((0, 2), (2, 4), (4, 5)))
    """
    starts = [i * stride - before for i in range(count("pool", size, before, after, kernel, stride, ceil))]
    return tuple((min(max(s, 0), size), min(max(s + kernel, 0), size)) for s in starts)


@functools.lru_cache(maxsize=1024)
def padded_lengths(size: int, kernel: int, stride: int, before: int, after: int, ceil: bool) -> tuple[int, ...]:
    """How many elements the `sliding` windows have if those of the padding count.

    >>> padded_lengths(5, 3, 2, 1, 1, False), padded_lengths(5, 2, 2, 0, 0, True)
    ((3, 3, 3), (2, 2, 1))
    """
    n = count("pool", size, before, after, kernel, stride, ceil)
    return tuple(min(kernel, before + size + after - i * stride) for i in range(n))


@functools.lru_cache(maxsize=1024)
def adaptive(size: int, n: int) -> Bins:
    """n bins of about size / n elements each, which overlap by one element where that is not whole.

    >>> adaptive(5, 3)
    ((0, 2), (1, 4), (3, 5))
    """
    return tuple((i * size // n, -(-(i + 1) * size // n)) for i in range(n))


@functools.lru_cache(maxsize=1024)
def fractional(size: int, n: int, kernel: int, u: float) -> Bins:
    """n bins of irregular lengths that u in (0, 1) selects: disjoint, or of `kernel` elements each unless that is 0.

    Bin i starts at floor(a (i + u)) - floor(a u) with a = size / n, or a = (size - kernel) / (n - 1).  Disjoint bins
    cover everything, for which u is scaled down.   (Graham, Fractional Max-Pooling, 2014; the ranges are Paddle's.)

    >>> fractional(7, 5, 0, 0.3), fractional(7, 5, 2, 0.3)
    (((0, 1), (1, 3), (3, 4), (4, 6), (6, 7)), ((0, 2), (1, 3), (2, 4), (4, 6), (5, 7)))
    """
    if kernel:
        a = (size - kernel) / (n - 1) if n > 1 else 0.0
        starts = [int(a * (i + u)) - int(a * u) for i in range(n)]
        return tuple((s, min(s + kernel, size)) for s in starts)
    a, least = size / n, size // n
    u *= min((least + 2) / a - 1, (size + 1 - least) / a - (n - 1))
    edges = [min(int(a * (i + u)) - int(a * u), size) for i in range(n + 1)]
    return tuple(zip(edges, edges[1:], strict=False))


@functools.lru_cache(maxsize=1024)
def transposed(bins: Bins, size: int) -> Bins:
    """For each of `size` elements, the range of the bins that contain it.

    >>> transposed(((0, 2), (1, 4), (3, 5)), 5)
    ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3))
    """
    found, low, high = [], 0, 0
    for j in range(size):
        while low < len(bins) and bins[low][1] <= j:
            low += 1
        while high < len(bins) and bins[high][0] <= j:
            high += 1
        found.append((min(low, high), high))
    return tuple(found)


def lengths(bins: Bins) -> tuple[int, ...]:
    """How many elements each bin has."""
    return tuple(end - start for start, end in bins)


def sums(xp: Any, x: Any, axis: int, bins: Bins) -> Any:
    """The sum of each bin along `axis`; 0 for an empty one."""
    have = lengths(bins)
    shortest, longest = min(have, default=0), max(have, default=0)
    if longest == 0:
        return xp.zeros((*x.shape[:axis], len(bins), *x.shape[axis + 1:]), x.dtype)
    if shortest == longest >= 8 and all(end == after for (_, end), (after, _) in zip(bins, bins[1:], strict=False)):
        first = bins[0][0]                          # shares of one size: a dimension of its own for what is summed
        x = x[(slice(None),) * axis + (slice(first, first + longest * len(bins)),)]
        return x.reshape(*x.shape[:axis], len(bins), longest, *x.shape[axis + 1:]).sum(axis=axis + 1, dtype=x.dtype)
    total = xp.zeros((*x.shape[:axis], len(bins), *x.shape[axis + 1:]), x.dtype)
    for t in range(longest):
        part = take(xp, x, axis, _places(bins, t, x.shape[axis]))
        if t >= shortest:
            reach = along(xp, tuple(n > t for n in have), x.ndim, axis)
            part = xp.where(reach, part, x.dtype.type(0))
        total += part
    return total


def maxima(xp: Any, x: Any, bins: tuple[Bins, ...]) -> tuple[Any, Any]:
    """(the largest element of each bin over the last dimensions, its position in them, row-major and int32).

    The first of equal ones; NaN if there is one.  An empty bin gives the lowest number, and position -1.

    >>> import numpy as np
    >>> maxima(np, np.array([[1, 5, 2], [3, 0, 4]]), (((0, 2),), ((0, 1), (1, 3))))
    (array([[3, 5]]), array([[3, 1]], dtype=int32))
    """
    first, inner = x.ndim - len(bins), 1
    place: Any = None
    some_nan = x.dtype.kind not in "iub" and bool(xp.isnan(xp.sum(x)))
    for axis in range(x.ndim - 1, first - 1, -1):
        size, of_axis = x.shape[axis], bins[axis - first]
        best: Any = None
        found: Any = None
        for t in range(max(lengths(of_axis), default=0) or 1):
            where = _places(of_axis, t, size)
            value = take(xp, x, axis, where)
            at = along(xp, where, x.ndim, axis, xp.int32) * xp.int32(inner)
            at = at if place is None else at + take(xp, place, axis, where)
            if best is None:
                best, found = xp.array(value), xp.array(xp.broadcast_to(at, value.shape))
                continue
            better = value > best
            if some_nan:
                better |= (value != value) & (best == best)
            xp.maximum(best, value, out=best)
            change = at - found                     # by arithmetic: which is larger, no processor can guess
            change *= better
            found += change
        x, place, inner = best, found, inner * size
    for axis, of_axis in enumerate(bins, first):
        empty = [i for i, (start, end) in enumerate(of_axis) if start == end]
        if empty:
            nothing = (slice(None),) * axis + (empty,)
            x[nothing], place[nothing] = lowest(xp, x.dtype), -1
    return x, place


def lowest(xp: Any, dtype: Any) -> Any:
    """The lowest number of a dtype (of the finite ones)."""
    return xp.iinfo(dtype).min if dtype.kind in "iu" else False if dtype.kind == "b" else dtypes.finfo(dtype).min


def _places(bins: Bins, t: int, size: int) -> tuple[int, ...]:
    """Where element t of each bin is; of a shorter bin its last one, of an empty one anywhere."""
    return tuple(min(max(min(start + t, end - 1), 0), size - 1) for start, end in bins)


def take(xp: Any, x: Any, axis: int, places: tuple[int, ...]) -> Any:
    """The elements at these places along `axis`: a view where they are evenly spaced."""
    step = places[1] - places[0] if len(places) > 1 else 1
    if step > 0 and all(b - a == step for a, b in zip(places, places[1:], strict=False)):
        return x[(slice(None),) * axis + (slice(places[0], places[-1] + 1, step),)]
    return xp.take(x, xp.asarray(places, dtype=xp.intp), axis=axis)


def along(xp: Any, values: tuple, ndim: int, axis: int, dtype: Any = None) -> Any:
    """Values along one axis of ndim, to be broadcast over the others."""
    return xp.asarray(values, dtype=dtype).reshape((-1,) + (1,) * (ndim - 1 - axis))
