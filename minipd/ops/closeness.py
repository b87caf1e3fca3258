"""Questions about tensors that are composed of comparisons: are they close, equal throughout, among given values?"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.aggregate import all
from minipd.ops.creation import full
from minipd.ops.logic import isinf, isnan
from minipd.ops.math import abs
from minipd.ops.promotion import as_tensor, promoted
from minipd.ops.shapes import a_number, common_dtype

__all__ = ["allclose", "equal_all", "isclose", "isin", "isneginf", "isposinf"]


@op("isin", Trait.DISCRETE, Trait.ALLOCATES)
class IsIn:
    """Whether each element of x is among those of test_x, which has any shape; NaN is among nothing."""

    def infer_meta(x, test_x, *, assume_unique=False, invert=False):
        common_dtype("isin", x, test_x)
        return Meta(x.shape, dtypes.bool.np)

    def kernel(xp, x, test_x, *, assume_unique=False, invert=False):
        return xp.isin(x, test_x, assume_unique=assume_unique, invert=invert)


def isin(x: Tensor, test_x: Any, assume_unique: bool = False, invert: bool = False,
         name: str | None = None) -> Tensor:
    """Whether each element of x is among those of `test_x` (invert: is not).

    assume_unique: neither tensor has an element twice, which saves work.

    >>> from minipd.ops.creation import to_tensor
    >>> isin(to_tensor([1, 2, 3]), to_tensor([3, 1])).tolist()
    [True, False, True]
    """
    x, test_x = promoted("isin", as_tensor("isin", x), as_tensor("isin", test_x))
    return IsIn(x, test_x, assume_unique=bool(assume_unique), invert=bool(invert))


def isclose(x: Tensor, y: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,
            name: str | None = None) -> Tensor:
    """Whether |x - y| <= atol + rtol * |y|, element by element, broadcast.

    An infinity is close to itself only; NaN to nothing, or, if equal_nan, to NaN.

    >>> from minipd.ops.creation import to_tensor
    >>> isclose(to_tensor([1.0, 2.0]), to_tensor([1.0000001, 2.1])).tolist()
    [True, False]
    """
    rtol, atol = a_number("isclose", "rtol", rtol), a_number("isclose", "atol", atol)
    x, y = promoted("isclose", as_tensor("isclose", x), as_tensor("isclose", y))
    if x.payload.dtype == dtypes.bool.np:
        return x == y
    close = (x == y) | (abs(x - y) <= abs(y) * rtol + atol) & ~isinf(y)
    return close | (isnan(x) & isnan(y)) if equal_nan else close


def allclose(x: Tensor, y: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False,
             name: str | None = None) -> Tensor:
    """Whether all elements are close (see `isclose`): a 0-D bool tensor.

    >>> from minipd.ops.creation import to_tensor
    >>> allclose(to_tensor([1.0, 2.0]), to_tensor([1.0000001, 2.0])).item()
    True
    """
    return all(isclose(x, y, rtol, atol, equal_nan))


def equal_all(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """Whether two tensors have one shape and equal elements: a 0-D bool tensor.

    >>> from minipd.ops.creation import to_tensor
    >>> equal_all(to_tensor([1, 2]), to_tensor([1, 2])).item(), equal_all(to_tensor([1]), to_tensor([1, 1])).item()
    (True, False)
    """
    x, y = as_tensor("equal_all", x), as_tensor("equal_all", y)
    if x.payload.shape != y.payload.shape:
        return full([], False, dtype="bool")
    return all(x == y)


def isposinf(x: Tensor, name: str | None = None) -> Tensor:
    """Where x is infinite and positive.

    >>> from minipd.ops.creation import to_tensor
    >>> isposinf(to_tensor([float("inf"), -float("inf"), 1.0])).tolist()
    [True, False, False]
    """
    return isinf(as_tensor("isposinf", x)) & (x > 0)


def isneginf(x: Tensor, name: str | None = None) -> Tensor:
    """Where x is infinite and negative.

    >>> from minipd.ops.creation import to_tensor
    >>> isneginf(to_tensor([float("inf"), -float("inf"), 1.0])).tolist()
    [False, True, False]
    """
    return isinf(as_tensor("isneginf", x)) & (x < 0)
