"""Statistics that are composed of sums: counts, means that leave NaN out, variance."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.cast import cast
from minipd.ops.complex import is_complex
from minipd.ops.elementary import sqrt
from minipd.ops.making import into
from minipd.ops.math import abs, maximum, square, where
from minipd.ops.promotion import as_floating, as_tensor
from minipd.ops.reduce import Mean, Sum, count, sum
from minipd.ops.shapes import a_number, normalize_axes

__all__ = ["count_nonzero", "nanmean", "nansum", "std", "var"]


def count_nonzero(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """How many elements over `axis` (None: all) are not 0: int64.

    >>> from minipd.ops.creation import to_tensor
    >>> count_nonzero(to_tensor([[0.0, 1.5], [2.0, 3.0]]), axis=1).tolist()
    [1, 2]
    """
    x = as_tensor("count_nonzero", x)
    return sum(x if x.payload.dtype == dtypes.bool.np else x != 0, axis, keepdim=keepdim)


def nansum(x: Tensor, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The sum over `axis` (None: all) of what is not NaN.

    >>> from minipd.ops.creation import to_tensor
    >>> nansum(to_tensor([[1.0, float("nan")], [2.0, 3.0]]), axis=1).tolist()
    [1.0, 5.0]
    """
    return sum(_without_nan("nansum", x), axis, dtype, keepdim)


def _without_nan(what: str, x: Any) -> Tensor:
    x = as_tensor(what, x)
    return where(x != x, 0.0, x) if x.payload.dtype in dtypes.INEXACT else x


def nanmean(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Tensor:
    """The mean over `axis` (None: all) of what is not NaN; NaN where there is nothing else.

    >>> from minipd.ops.creation import to_tensor
    >>> nanmean(to_tensor([[1.0, float("nan")], [2.0, 3.0]]), axis=1).tolist()
    [1.0, 2.5]
    """
    x = as_floating("nanmean", x)
    return nansum(x, axis, keepdim=keepdim) / cast(count_numbers(x, axis, keepdim), x.dtype)


def count_numbers(x: Tensor, axis: Any, keepdim: bool) -> Tensor:
    """How many elements over `axis` are not NaN."""
    return sum(x == x, axis, keepdim=keepdim)


@whole
def var(x: Tensor, axis: Any = None, unbiased: bool | None = None, keepdim: bool = False, name: str | None = None, *,
        correction: float = 1, out: Tensor | None = None) -> Tensor:
    """The variance over `axis` (None: all): the mean square of the distance from the mean, or rather its sum, divided
    by the number of elements - `correction`.

    correction: 1 estimates the variance of what the elements are a sample of; 0 is the mean itself.  unbiased: True or
    False for a correction of 1 or 0.
    NaN where nothing is left to divide by.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0, 3.0])
    >>> var(x).item(), var(x, correction=0).item()
    (1.0, 0.6666666865348816)
    """
    x = as_floating("var", x)
    if unbiased is not None:
        correction = 1 if unbiased else 0
    correction = a_number("var", "correction", correction)
    axes = normalize_axes("var", axis, x.ndim)
    distance = x - Mean(x, axis=axes, keepdim=True)
    total = Sum(square(abs(distance) if is_complex(distance) else distance), axis=axes, keepdim=bool(keepdim))
    n = prod(x.payload.shape[a] for a in axes)
    if is_symbolic(n):
        return into(out, total / maximum(count(x.payload, axes) - float(correction), 0.0))
    return into(out, total / max(float(n) - correction, 0.0))


@whole
def std(x: Tensor, axis: Any = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None, *,
        correction: float = 1, out: Tensor | None = None) -> Tensor:
    """The standard deviation over `axis` (None: all): the square root of the variance (see `var`).

    >>> from minipd.ops.creation import to_tensor
    >>> std(to_tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    return into(out, sqrt(var(x, axis, None if unbiased else False, keepdim, correction=correction)))
