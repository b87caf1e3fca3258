"""Reductions: sum, mean, max, min over some axes.  Axes arrive normalised: ascending, counted from the front."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import expand_as
from minipd.ops.cast import cast
from minipd.ops.creation import Full
from minipd.ops.shapes import normalize_axes, normalize_axis, reduced_shape, require_inexact

__all__ = ["argmax", "max", "mean", "min", "sum"]


INT64 = dtypes.int64.np


def _reduced(x: Any, axis: tuple, keepdim: bool) -> Meta:
    return Meta(reduced_shape(x.shape, axis, keepdim), x.dtype)


def unreduced(g: Tensor, x: Any, axis: tuple, keepdim: bool) -> Tensor:
    """A reduction's result (or its gradient), back at the rank of x: size 1 where it was reduced."""
    return g if keepdim else g.reshape(reduced_shape(x.shape, axis, True))


@op("sum")
class Sum:
    """The sum over `axis`; 0 over nothing."""

    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False):
        return _reduced(x, axis, keepdim)

    def kernel(xp, x, *, axis, keepdim=False):
        return xp.sum(x, axis=axis, keepdims=keepdim, dtype=x.dtype)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.sum(x, axis=axis, keepdims=keepdim, dtype=x.dtype, out=out)

    def vjp_x(g, x: Meta, axis, keepdim):
        return expand_as(unreduced(g, x, axis, keepdim), x)


@op("mean")
class Mean:
    """The mean over `axis`; NaN over nothing."""

    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False):
        require_inexact("mean", x)
        return _reduced(x, axis, keepdim)

    def kernel(xp, x, *, axis, keepdim=False):
        with xp.errstate(invalid="ignore"):
            n = x.dtype.type(prod(x.shape[a] for a in axis))
            return xp.sum(x, axis=axis, keepdims=keepdim, dtype=x.dtype) / n

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.sum(x, axis=axis, keepdims=keepdim, dtype=x.dtype, out=out)
        with xp.errstate(invalid="ignore"):
            xp.true_divide(out, x.dtype.type(prod(x.shape[a] for a in axis)), out=out)

    def vjp_x(g, x: Meta, axis, keepdim):
        return expand_as(unreduced(g, x, axis, keepdim) / count(x, axis), x)


def count(x: Any, axis: tuple) -> Any:
    """How many (global) elements a reduction folds into one: a float, or a 0-D tensor where dimensions are symbolic.

    Of none there is nothing to divide the gradient among, and 1 serves as well as 0, without 0 / 0.
    """
    n = prod(x.shape[a] for a in axis)
    if not is_symbolic(n):
        return float(n) or 1.0
    return Full(shape=(), value=n, dtype=x.dtype)


class _Extreme:
    """What max and min share: equal extremes share the gradient, as in Paddle's amax and amin."""

    @staticmethod
    def kernel(function: str, xp: Any, x: Any, axis: tuple, keepdim: bool) -> Any:
        empty = [a for a in axis if x.shape[a] == 0]
        if empty:
            raise ValueError(f"{function}: axis {empty[0]} of shape {list(x.shape)} is empty: nothing is the largest "
                             "of no elements")
        return getattr(xp, function)(x, axis=axis, keepdims=keepdim)

    @staticmethod
    def vjp(g: Tensor, x: Tensor, out: Tensor, axis: tuple, keepdim: bool) -> Tensor:
        hit = cast(x == unreduced(out, x, axis, keepdim), x.dtype)
        return unreduced(g, x, axis, keepdim) * (hit / Sum(hit, axis=axis, keepdim=True))


@op("max", Trait.EXACT)
class Max:
    """The largest element over `axis`; NaN if there is one.  Equal maxima share the gradient."""

    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False):
        return _reduced(x, axis, keepdim)

    def kernel(xp, x, *, axis, keepdim=False):
        return _Extreme.kernel("max", xp, x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        out[...] = _Extreme.kernel("max", xp, x, axis, keepdim)

    def vjp_x(g, x, out, axis, keepdim):
        return _Extreme.vjp(g, x, out, axis, keepdim)


@op("min", Trait.EXACT)
class Min:
    """The smallest element over `axis`; NaN if there is one.  Equal minima share the gradient."""

    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False):
        return _reduced(x, axis, keepdim)

    def kernel(xp, x, *, axis, keepdim=False):
        return _Extreme.kernel("min", xp, x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        out[...] = _Extreme.kernel("min", xp, x, axis, keepdim)

    def vjp_x(g, x, out, axis, keepdim):
        return _Extreme.vjp(g, x, out, axis, keepdim)


@op("argmax", Trait.EXACT, Trait.DISCRETE)
class Argmax:
    """The index of the first largest element along `axis`."""

    mutable = ("axis",)

    def infer_meta(x, *, axis, keepdim=False, dtype=INT64):
        return Meta(reduced_shape(x.shape, (axis,), keepdim), dtype)

    def kernel(xp, x, *, axis, keepdim=False, dtype=INT64):
        return xp.asarray(_argmax(xp, x, axis, keepdim)).astype(dtype)

    def kernel_out(xp, out, x, *, axis, keepdim=False, dtype=INT64):
        out[...] = _argmax(xp, x, axis, keepdim)


def _argmax(xp: Any, x: Any, axis: int, keepdim: bool) -> Any:
    if x.ndim and not x.shape[axis]:
        raise ValueError(f"argmax: axis {axis} of {describe(x)} is empty: nothing is the largest of no elements")
    return xp.argmax(x, axis=axis, keepdims=keepdim)


def sum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The sum over `axis` (None: all).  bool and small ints add up in int64.

    >>> from minipd.ops.creation import to_tensor
    >>> sum(to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=-1).tolist()
    [3.0, 7.0]
    """
    own = x.payload.dtype
    if dtype is not None:
        x = cast(x, dtype)
    elif own not in dtypes.INEXACT and own != dtypes.int64.np:
        x = cast(x, dtypes.int64)
    return Sum(x, axis=normalize_axes("sum", axis, x.ndim), keepdim=keepdim)


def mean(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The mean over `axis` (None: all).

    Raises: TypeError for int tensors.
    """
    require_inexact("mean", x.payload)
    return Mean(x, axis=normalize_axes("mean", axis, x.ndim), keepdim=keepdim)


def max(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The largest element over `axis` (None: all).

    Raises: ValueError over an empty axis.
    """
    return Max(x, axis=normalize_axes("max", axis, x.ndim), keepdim=keepdim)


def min(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The smallest element over `axis` (None: all).

    Raises: ValueError over an empty axis.
    """
    return Min(x, axis=normalize_axes("min", axis, x.ndim), keepdim=keepdim)


def argmax(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = "int64",
           name: str | None = None) -> Tensor:
    """The index of the first largest element along `axis` (None: of the flattened tensor).

    >>> from minipd.ops.creation import to_tensor
    >>> argmax(to_tensor([[1, 5], [7, 2]]), axis=1).tolist()
    [1, 0]
    """
    if axis is None:
        x, axis = x.reshape([-1]), 0
    return Argmax(x, axis=normalize_axis("argmax", axis, x.ndim), keepdim=keepdim, dtype=dtypes.to_np(dtype))
