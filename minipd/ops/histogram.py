"""How many elements fall where: counts by number, and in bins of one or several dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.room import require_room
from minipd.framework.tensor import Tensor
from minipd.ops.by_number import IndexAdd, require_index
from minipd.ops.cast import cast
from minipd.ops.creation import Full, ones_like
from minipd.ops.logic import logical_and
from minipd.ops.math import minimum, where
from minipd.ops.ranges import linspace
from minipd.ops.reshape import reshape
from minipd.ops.rounding import floor
from minipd.ops.search import searchsorted
from minipd.ops.shapes import shapes_agree

__all__ = ["bincount", "histogram", "histogram_bin_edges", "histogramdd"]


def _counted(numbers: Tensor, size: int, weights: Tensor) -> Tensor:
    """The sums of the weights of equal numbers below `size`."""
    zeros = Full(shape=(size,), value=0, dtype=weights.payload.dtype)
    return IndexAdd(zeros, numbers, weights, axis=0)


def _check_weights(what: str, weights: Tensor, shape: tuple) -> None:
    if not shapes_agree(weights.payload.shape, shape, f"{what}: the shape of the weights"):
        raise ValueError(f"{what}: expected weights of shape {list(shape)}, got {describe(weights.payload)}")


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0, name: str | None = None) -> Tensor:
    """How often each number from 0 to the greatest comes in x (or the sums of its weights), for at least `minlength`
    numbers: int64, or the weights' dtype (float64 for ints).   x: int [n], weights [n]

    How many numbers there are depends on values: not while tracing.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1, 2, 1])
    >>> bincount(x).tolist(), bincount(x, to_tensor([0.5, 1.0, 0.25]), minlength=4).tolist()
    ([0, 2, 1], [0.0, 0.75, 1.0, 0.0])
    """
    require_index("bincount", x.payload)
    if x.ndim != 1 or minlength < 0:
        raise ValueError(f"bincount: expected a tensor of 1 dimension and a minlength of at least 0, got "
                         f"{describe(x.payload)} and {minlength}")
    values = x.values("bincount(), whose size depends on values")
    if (values < 0).any():
        raise ValueError(f"bincount: expected numbers of at least 0, got {values.min()}")
    size = max(int(values.max()) + 1 if values.size else 0, minlength)
    require_room("bincount", (size,), 8)
    if weights is None:
        return Tensor(np.bincount(values, minlength=size))
    _check_weights("bincount", weights, x.payload.shape)
    return _counted(x, size, weights if weights.payload.dtype in dtypes.FLOATS else cast(weights, "float64"))


def _bounds(what: str, x: Tensor, bins: int, low: float, high: float) -> tuple[Any, Any]:
    """Where the bins begin and end: as given, or, given equal bounds, the least and the greatest element; these too
    apart by 1 if they are equal."""
    if bins < 1 or low > high:
        raise ValueError(f"{what}: expected at least 1 bin and min <= max, got {bins} bins from {low} to {high}")
    if low == high == 0 and math.prod(x.payload.shape):
        low, high = x.min(), x.max()
        equal = low == high
        return where(equal, low - 0.5, low), where(equal, high + 0.5, high)
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def histogram(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0, weight: Tensor | None = None,
              density: bool = False, name: str | None = None) -> Tensor:
    """How many elements (or what sum of their weights) each of `bins` bins of one width has, from `min` to `max`, which
    are included; both 0: from the least to the greatest element.

    Result: int64 [bins], of the weight's dtype if it is given; `density`: float32, divided by the sum and the width.

    >>> from minipd.ops.creation import to_tensor
    >>> histogram(to_tensor([1, 2, 1]), bins=4, min=0, max=3).tolist()
    [0, 2, 1, 0]
    """
    x = reshape(cast(input, "float64"), [-1])
    low, high = _bounds("histogram", x, bins, min, max)
    inside = logical_and(x >= low, x <= high)
    numbers = minimum(floor((where(inside, x, low) - low) * (bins / (high - low))), bins - 1)
    if weight is None:
        weights = cast(inside, "int64")
    else:
        _check_weights("histogram", weight, input.payload.shape)
        weights = reshape(weight, [-1]) * cast(inside, weight.dtype)
    counts = _counted(cast(numbers, "int64"), bins, weights)
    if not density:
        return counts
    counts = cast(counts, "float64" if counts.dtype == "float64" else "float32")
    return counts / (counts.sum() * _cast_like((high - low) / bins, counts))


def _cast_like(number: Any, x: Tensor) -> Any:
    """A number, or a tensor in the dtype of x."""
    return cast(number, x.dtype) if isinstance(number, Tensor) else number


def histogram_bin_edges(input: Tensor, bins: int = 100, min: float = 0.0, max: float = 0.0,
                        name: str | None = None) -> Tensor:
    """The bounds of the bins that `histogram` counts in.   -> float32 [bins + 1]

    >>> from minipd.ops.creation import to_tensor
    >>> histogram_bin_edges(to_tensor([1.0, 5.0]), bins=4).tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    low, high = _bounds("histogram_bin_edges", cast(input, "float64"), bins, min, max)
    return linspace(low, high, bins + 1, "float32")


def _edges(x: Tensor, bins: Any, ranges: Any) -> list[Tensor]:
    """The bounds of the bins of each dimension, of which x has a column each."""
    count = x.payload.shape[1]
    given = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count or ranges is not None and len(ranges) != 2 * count:
        raise ValueError(f"histogramdd: expected bins (and twice as many ranges) for {count} dimensions, got "
                         f"{len(given)} bins and ranges {ranges}")
    edges = []
    for i, b in enumerate(given):
        if isinstance(b, Tensor):
            edges.append(b)
            continue
        low, high = (0.0, 0.0) if ranges is None else ranges[2 * i:2 * i + 2]
        edges.append(linspace(*_bounds("histogramdd", x[:, i], b, low, high), b + 1, x.dtype))
    return edges


def histogramdd(x: Tensor, bins: Any = 10, ranges: Any = None, density: bool = False, weights: Tensor | None = None,
                name: str | None = None) -> tuple[Tensor, list[Tensor]]:
    """How many points (or what sum of their weights) each bin of several dimensions has, and the bins' bounds.

    x: floats [..., dimensions].  bins: how many in each dimension, a list of that, or a list of bounds (tensors).
    ranges: the first and last bound of every dimension, one after the other; else the least and greatest coordinate.
    density: divided by the sum and the volume of the bin.

    >>> from minipd.ops.creation import to_tensor
    >>> counts, edges = histogramdd(to_tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]), bins=2)
    >>> counts.tolist(), [e.tolist() for e in edges]
    ([[0.0, 1.0], [2.0, 0.0]], [[0.0, 0.5, 1.0], [0.0, 0.5, 1.0]])
    """
    if x.ndim < 2:
        raise ValueError(f"histogramdd: expected points in a tensor of at least 2 dimensions, got {describe(x)}")
    points = reshape(x, [-1, x.payload.shape[-1]])
    edges = _edges(points, bins, ranges)
    if weights is not None:
        _check_weights("histogramdd", weights, x.payload.shape[:-1])
    weight = ones_like(points[:, 0]) if weights is None else reshape(weights, [-1])
    numbers: Any = 0
    sizes = [e.payload.shape[0] - 1 for e in edges]
    for i, (e, n) in enumerate(zip(edges, sizes, strict=True)):
        v = points[:, i]
        number = where(v == e[-1], n - 1, searchsorted(e, v, right=True) - 1)
        inside = logical_and(number >= 0, number < n)
        weight = weight * cast(inside, weight.dtype)
        numbers = numbers * n + where(inside, number, 0)
    counts = reshape(_counted(numbers, math.prod(sizes), weight), sizes)
    if density:
        counts = counts / counts.sum()
        for i, e in enumerate(edges):
            counts = counts / reshape(e[1:] - e[:-1], [-1] + [1] * (len(sizes) - i - 1))
    return counts, edges
