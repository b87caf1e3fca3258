"""Reductions: sum, mean, max, min over some axes.  Axes arrive normalised: ascending, counted from the front."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import expand_as
from minipd.ops.cast import cast
from minipd.ops.creation import Full
from minipd.ops.making import into
from minipd.ops.promotion import as_tensor
from minipd.ops.reshape import Reshape
from minipd.ops.shapes import normalize_axes, normalize_axis, reduced_shape, require_inexact

__all__ = ["amax", "amin", "argmax", "argmin", "max", "mean", "min", "sum"]

INT64 = dtypes.int64.np


class Reduction:
    """One operand, folded over the axes `axis` (ascending, non-negative); the result has the operand's dtype."""

    mutable = ("axis",)

    def infer_meta(what, x, *, axis, keepdim=False):
        return Meta(reduced_shape(x.shape, axis, keepdim), x.dtype)


def unreduced(g: Tensor, x: Any, axis: tuple, keepdim: bool) -> Tensor:
    """A reduction's result (or its gradient) as it broadcasts to x: size 1 where it was reduced.  For leading axes (and
    for all) that is so already."""
    if keepdim or not axis or axis[-1] == len(axis) - 1:
        return g
    return Reshape(g, shape=reduced_shape(x.shape, axis, True))


@op("sum")
class Sum(Reduction):
    """The sum over `axis`; 0 over nothing."""

    def kernel(xp, x, *, axis, keepdim=False):
        return xp.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdim, out=out)

    def vjp_x(g, x: Meta, axis, keepdim):
        return expand_as(unreduced(g, x, axis, keepdim), x)


@op("mean")
class Mean(Reduction):
    """The mean over `axis`; NaN over nothing."""

    def infer_meta(x, *, axis, keepdim=False):
        require_inexact("mean", x)
        return Meta(reduced_shape(x.shape, axis, keepdim), x.dtype)

    def kernel(xp, x, *, axis, keepdim=False):
        return mean_of(xp, x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        mean_of(xp, x, axis, keepdim, out)

    def vjp_x(g, x: Meta, axis, keepdim):
        return expand_as(unreduced(g, x, axis, keepdim) / count(x, axis), x)


def mean_of(xp: Any, x: Any, axis: tuple, keepdim: bool, out: Any = None) -> Any:
    """The mean of an array, in a new one if `out` is None."""
    total = xp.add.reduce(x, axis=axis, dtype=x.dtype, keepdims=keepdim, out=out)
    n = x.size // (total.size or 1)
    return xp.true_divide(total, n or math.nan, out=out)


def count(x: Any, axis: tuple) -> Any:
    """How many (global) elements a reduction folds into one: a float, or a 0-D tensor where dimensions are symbolic.

    Of none there is nothing to divide the gradient among, and 1 serves as well as 0, without 0 / 0.
    """
    n = prod([x.shape[a] for a in axis])
    if not is_symbolic(n):
        return float(n) or 1.0
    return Full(shape=(), value=n, dtype=x.dtype)


class Extreme(Reduction):
    """What max and min share: equal extremes share the gradient, as in Paddle."""

    traits = (Trait.EXACT,)

    def vjp_x(g, x, out, axis, keepdim):
        hit = cast(x == unreduced(out, x, axis, keepdim), x.dtype)
        return unreduced(g, x, axis, keepdim) * (hit / Sum(hit, axis=axis, keepdim=True))


@op("max")
class Max(Extreme):
    """The largest element over `axis`; NaN if there is one.  Equal maxima share the gradient."""

    def kernel(xp, x, *, axis, keepdim=False):
        return _extreme(xp, "max", x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        out[...] = _extreme(xp, "max", x, axis, keepdim)


@op("min")
class Min(Extreme):
    """The smallest element over `axis`; NaN if there is one.  Equal minima share the gradient."""

    def kernel(xp, x, *, axis, keepdim=False):
        return _extreme(xp, "min", x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        out[...] = _extreme(xp, "min", x, axis, keepdim)


class IndexOfExtreme:
    """What argmax and argmin share."""

    traits = (Trait.EXACT, Trait.DISCRETE)
    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False, dtype=INT64):
        return Meta(reduced_shape(x.shape, (axis,), keepdim), dtype)


@op("argmax")
class Argmax(IndexOfExtreme):
    """The index of the first largest element along `axis`."""

    def kernel(xp, x, *, axis, keepdim=False, dtype=INT64):
        return xp.asarray(_extreme(xp, "argmax", x, axis, keepdim)).astype(dtype)

    def kernel_out(xp, out, x, *, axis, keepdim=False, dtype=INT64):
        out[...] = _extreme(xp, "argmax", x, axis, keepdim)


@op("argmin")
class Argmin(IndexOfExtreme):
    """The index of the first smallest element along `axis`."""

    def kernel(xp, x, *, axis, keepdim=False, dtype=INT64):
        return xp.asarray(_extreme(xp, "argmin", x, axis, keepdim)).astype(dtype)

    def kernel_out(xp, out, x, *, axis, keepdim=False, dtype=INT64):
        out[...] = _extreme(xp, "argmin", x, axis, keepdim)


def _extreme(xp: Any, function: str, x: Any, axis: Any, keepdim: bool) -> Any:
    empty = [a for a in (axis if isinstance(axis, tuple) else (axis,)) if x.ndim and not x.shape[a]]
    if empty:
        raise ValueError(f"{function}: axis {empty[0]} of {describe(x)} is empty: nothing is the largest of no "
                         "elements")
    return getattr(xp, function)(x, axis=axis, keepdims=keepdim)


# ------------------------------------------------------------------------------------------- public functions
def sum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """The sum over `axis` (None: all).  bool and small ints add up in int64.

    >>> from minipd.ops.creation import to_tensor
    >>> sum(to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=-1).tolist()
    [3.0, 7.0]
    """
    x = _summable("sum", x, dtype)
    return into(out, Sum(x, axis=normalize_axes("sum", axis, x.ndim), keepdim=bool(keepdim)))


def _summable(what: str, x: Any, dtype: Any) -> Tensor:
    """x in the dtype in which it is added up."""
    x = as_tensor(what, x)
    if dtype is not None:
        return cast(x, dtype)
    return x if x.payload.dtype in dtypes.INEXACT or x.payload.dtype == INT64 else cast(x, dtypes.int64)


def mean(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *, dtype: Any = None,
         out: Tensor | None = None) -> Tensor:
    """The mean over `axis` (None: all).   dtype: x is cast to it first.

    Raises: TypeError for int tensors, unless a floating dtype is given.

    >>> from minipd.ops.creation import to_tensor
    >>> mean(to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [2.0, 3.0]
    """
    x = as_tensor("mean", x) if dtype is None else cast(as_tensor("mean", x), dtype)
    require_inexact("mean", x.payload)
    return into(out, Mean(x, axis=normalize_axes("mean", axis, x.ndim), keepdim=bool(keepdim)))


def max(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """The largest element over `axis` (None: all).  Equal maxima share the gradient.

    Raises: ValueError over an empty axis.

    >>> from minipd.ops.creation import to_tensor
    >>> max(to_tensor([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 5]
    """
    x = as_tensor("max", x)
    return into(out, Max(x, axis=normalize_axes("max", axis, x.ndim), keepdim=bool(keepdim)))


def min(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """The smallest element over `axis` (None: all).  Equal minima share the gradient.

    Raises: ValueError over an empty axis.

    >>> from minipd.ops.creation import to_tensor
    >>> min(to_tensor([[1, 5], [7, 2]]), axis=0).tolist()
    [1, 2]
    """
    x = as_tensor("min", x)
    return into(out, Min(x, axis=normalize_axes("min", axis, x.ndim), keepdim=bool(keepdim)))


amax, amin = max, min           # two names in Paddle for what has had, since 3.0, one gradient


def argmax(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = "int64",
           name: str | None = None) -> Tensor:
    """The index of the first largest element along `axis` (None: of the flattened tensor).

    >>> from minipd.ops.creation import to_tensor
    >>> argmax(to_tensor([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 0]
    """
    return _index_of_extreme(Argmax, x, axis, keepdim, dtype)


def argmin(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = "int64",
           name: str | None = None) -> Tensor:
    """The index of the first smallest element along `axis` (None: of the flattened tensor).

    >>> from minipd.ops.creation import to_tensor
    >>> argmin(to_tensor([[1, 5], [7, 2]]), axis=1).tolist()
    [0, 1]
    """
    return _index_of_extreme(Argmin, x, axis, keepdim, dtype)


def _index_of_extreme(row: Any, x: Any, axis: Any, keepdim: bool, dtype: Any) -> Tensor:
    x = as_tensor(row.name, x)
    dtype = dtypes.to_np("int64" if dtype is None else dtype)
    if dtype not in (INT64, dtypes.int32.np):
        raise TypeError(f"{row.name}: expected dtype int32 or int64 for an index, got {dtypes.of(dtype).name}")
    if axis is not None:
        return row(x, axis=normalize_axis(row.name, axis, x.ndim), keepdim=bool(keepdim), dtype=dtype)
    found = row(x.reshape([-1]), axis=0, keepdim=False, dtype=dtype)
    return found.reshape([1] * x.ndim) if keepdim else found
