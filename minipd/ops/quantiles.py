"""Medians and quantiles: places in a sorted row, and what lies between two of them."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.cast import cast
from minipd.ops.creation import full, ones_like
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.joining import stack
from minipd.ops.making import into
from minipd.ops.math import maximum, where
from minipd.ops.promotion import as_floating, as_tensor
from minipd.ops.reduce import Sum
from minipd.ops.rounding import ceil, floor, round
from minipd.ops.shapes import normalize_axes, reduced_shape, require_inexact
from minipd.ops.sorting import Argsort

__all__ = ["median", "nanmedian", "nanquantile", "quantile"]

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


class Rows(NamedTuple):
    """The elements over some axes, in order, NaN last.

    values, order: [..., n], order being where each value stood.  numbers: [..., 1], how many are not NaN.  size: n.
    shape: of a reduction, with a 1 for each axis; squeezed: without them.
    """

    values: Tensor
    order: Tensor
    numbers: Tensor
    size: Tensor
    shape: list
    squeezed: list

    def at(self, what: Tensor, place: Tensor) -> Tensor:
        return TakeAlongAxis(what, cast(place, "int64"), axis=what.ndim - 1)

    def result(self, found: Tensor, keepdim: bool) -> Tensor:
        return found.reshape(self.shape if keepdim else self.squeezed)


def _rows(what: str, x: Tensor, axis: Any) -> Rows:
    axes = normalize_axes(what, axis, x.ndim)
    shape = x.payload.shape
    others = [i for i in range(x.ndim) if i not in axes]
    row = x.transpose(others + list(axes)) if others else x
    row = row.reshape([*(shape[i] for i in others), prod(shape[a] for a in axes)])
    values, order = Argsort(row, axis=len(others), descending=False)
    last = (len(others),)
    ordered = cast(row == row, "int64")
    return Rows(values, order, Sum(ordered, axis=last, keepdim=True), Sum(ones_like(ordered), axis=last, keepdim=True),
                list(reduced_shape(shape, axes, True)), list(reduced_shape(shape, axes, False)))


def _quantile(rows: Rows, q: float, interpolation: str, ignore_nan: bool) -> Tensor:
    """At q between the first element and the last: [..., 1]."""
    values = rows.values
    place = cast((rows.numbers if ignore_nan else rows.size) - 1, "float64") * q
    place = maximum(place, 0.0)                     # where there are only NaN
    if interpolation == "nearest":
        found = rows.at(values, round(place))
    elif interpolation == "lower":
        found = rows.at(values, floor(place))
    elif interpolation == "higher":
        found = rows.at(values, ceil(place))
    else:
        low, high = rows.at(values, floor(place)), rows.at(values, ceil(place))
        weight = cast(place - floor(place), values.dtype) if interpolation == "linear" else 0.5
        found = where(floor(place) == place, low, low + (high - low) * weight)
    if ignore_nan or values.payload.dtype not in dtypes.FLOATS:         # ints, whose lower median is an int
        return found
    return where(rows.numbers == rows.size, found, float("nan"))


def _quantiles(what: str, x: Tensor, q: Any, axis: Any, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    x = as_floating(what, x)
    require_inexact(what, x.payload)
    if interpolation not in INTERPOLATIONS:
        raise ValueError(f"{what}: expected interpolation to be one of {', '.join(INTERPOLATIONS)}, got "
                         f"{interpolation!r}")
    q = q.tolist() if isinstance(q, Tensor) else q
    qs = list(q) if isinstance(q, (list, tuple)) else [q]
    if not qs or not all(isinstance(v, numbers.Real) and 0 <= float(v) <= 1 for v in qs):
        raise ValueError(f"{what}: expected q to be a number in [0, 1], or some of them, got {q!r}")
    axes = normalize_axes(what, axis, x.ndim)
    if any(x.payload.shape[a] == 0 for a in axes):
        raise ValueError(f"{what}: an axis of {list(axes)} of shape {list(x.shape)} is empty: no elements, no quantile")
    rows = _rows(what, x, axis)
    found = [rows.result(_quantile(rows, float(v), interpolation, ignore_nan), keepdim) for v in qs]
    return stack(found) if len(found) > 1 else found[0]


def quantile(x: Tensor, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear",
             name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The value below which a part q of the elements over `axis` (None: all) lies; NaN if there is one.

    q: a number in [0, 1], or several: then they are a new first dimension of the result.
    interpolation: what to take between two elements: "linear", "lower", "higher", "midpoint", or "nearest" of them.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0, 3.0, 4.0])
    >>> quantile(x, 0.5).item(), quantile(x, [0.0, 1.0]).tolist(), quantile(x, 0.5, interpolation="lower").item()
    (2.5, [1.0, 4.0], 2.0)
    """
    return into(out, _quantiles("quantile", x, q, axis, keepdim, interpolation, ignore_nan=False))


def nanquantile(x: Tensor, q: Any, axis: Any = None, keepdim: bool = False, interpolation: str = "linear",
                name: str | None = None) -> Tensor:
    """The same as `quantile`, of what is not NaN; NaN where there is nothing else.

    >>> from minipd.ops.creation import to_tensor
    >>> nanquantile(to_tensor([1.0, float("nan"), 3.0]), 0.5).item()
    2.0
    """
    return _quantiles("nanquantile", x, q, axis, keepdim, interpolation, ignore_nan=True)


def _median(what: str, x: Any, axis: Any, keepdim: bool, mode: str, ignore_nan: bool) -> Any:
    if mode not in ("avg", "min"):
        raise ValueError(f'{what}: expected mode to be "avg" or "min", got {mode!r}')
    x = as_tensor(what, x)
    own = x.dtype
    if mode == "avg" and own.np not in dtypes.FLOATS:
        x = as_floating(what, x)
    axes = normalize_axes(what, axis, x.ndim)
    if any(x.payload.shape[a] == 0 for a in axes):
        return full(list(reduced_shape(x.payload.shape, axes, keepdim)), float("nan"), dtype=x.dtype)
    rows = _rows(what, x, axis)
    found = rows.result(_quantile(rows, 0.5, "midpoint" if mode == "avg" else "lower", ignore_nan), keepdim)
    if mode == "avg" or not isinstance(axis, int):
        return found
    place = floor(cast((rows.numbers if ignore_nan else rows.size) - 1, "float64") * 0.5)
    if not ignore_nan:                              # the first NaN, if there is one
        place = where(rows.numbers == rows.size, place, cast(rows.numbers, "float64"))
    return found, rows.result(rows.at(rows.order, maximum(place, 0.0)), keepdim)


@whole
def median(x: Tensor, axis: int | None = None, keepdim: bool = False, mode: str = "avg", name: str | None = None, *,
           out: Any = None) -> Any:
    """The element in the middle over `axis` (None: all) when they are in order; NaN if there is one.

    mode: of an even number of elements, "avg" is the mean of the two in the middle (of ints, a float), "min" the lesser
    one; with an axis, "min" also gives its number: (median, index).

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[4.0, 1.0, 3.0, 2.0]])
    >>> median(x).item(), [t.tolist() for t in median(x, axis=1, mode="min")]
    (2.5, [[2.0], [3]])
    """
    if axis is not None and not isinstance(axis, int):
        raise ValueError(f"median: expected axis to be an int or None, got {axis!r}")
    return _into_each(out, _median("median", x, axis, keepdim, mode, ignore_nan=False))


def nanmedian(x: Tensor, axis: Any = None, keepdim: bool = False, mode: str = "avg", name: str | None = None) -> Any:
    """The same as `median`, of what is not NaN, and over several axes too; NaN where there is nothing else.

    >>> from minipd.ops.creation import to_tensor
    >>> nanmedian(to_tensor([1.0, float("nan"), 3.0])).item()
    2.0
    """
    return _median("nanmedian", x, axis, keepdim, mode, ignore_nan=True)


def _into_each(out: Any, found: Any) -> Any:
    if out is None or isinstance(found, Tensor):
        return into(out, found)
    return tuple(into(o, f) for o, f in zip(out, found, strict=True))
