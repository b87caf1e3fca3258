"""Reductions beyond sums and extremes: products, logarithms of sums of exponentials, the truth of all or any."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.elementary import exp
from minipd.ops.making import into
from minipd.ops.promotion import as_floating, as_tensor
from minipd.ops.reduce import Reduction, unreduced
from minipd.ops.scan import Cumprod
from minipd.ops.shapes import normalize_axes, reduced_shape, require_floating

__all__ = ["all", "any", "logsumexp", "prod"]


@op("prod")
class Prod(Reduction):
    """The product over `axis`; 1 over nothing."""

    def kernel(xp, x, *, axis, keepdim=False):
        return xp.prod(x, axis=axis, keepdims=keepdim, dtype=x.dtype)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.prod(x, axis=axis, keepdims=keepdim, dtype=x.dtype, out=out)

    def vjp_x(g, x, axis, keepdim):
        """The product of all the others: of those before along each axis, times those behind.  So no element divides,
        and an element that is 0 gets what is right."""
        g, product = unreduced(g, x, axis, keepdim), x
        for a in reversed(axis):
            g = g * Cumprod(product, axis=a, exclusive=True) * Cumprod(product, axis=a, exclusive=True, reverse=True)
            product = Prod(product, axis=(a,), keepdim=True)
        return g


@op("logsumexp")
class LogSumExp(Reduction):
    """ln of the sum of e^x over `axis`, without overflow on the way; -inf over nothing."""

    def infer_meta(x, *, axis, keepdim=False):
        require_floating("logsumexp", x)
        return Meta(reduced_shape(x.shape, axis, keepdim), x.dtype)

    def kernel(xp, x, *, axis, keepdim=False):
        return _logsumexp(xp, x, axis, keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        out[...] = _logsumexp(xp, x, axis, keepdim)

    def vjp_x(g, x, out, axis, keepdim):
        return unreduced(g, x, axis, keepdim) * exp(x - unreduced(out, x, axis, keepdim))


def _logsumexp(xp: Any, x: Any, axis: tuple, keepdim: bool) -> Any:
    largest = xp.max(x, axis=axis, keepdims=True, initial=-xp.inf)
    largest = xp.where(xp.isfinite(largest), largest, x.dtype.type(0))
    total = xp.sum(xp.exp(x - largest), axis=axis, keepdims=keepdim)
    return xp.log(total) + largest.reshape(total.shape)


class Truth(Reduction):
    """Any number but 0 counts as true."""

    traits = (Trait.DISCRETE,)

    def infer_meta(what, x, *, axis, keepdim=False):
        return Meta(reduced_shape(x.shape, axis, keepdim), dtypes.bool.np)


@op("all")
class AllOf(Truth):
    """Whether every element over `axis` is true; true over nothing."""

    def kernel(xp, x, *, axis, keepdim=False):
        return xp.all(x, axis=axis, keepdims=keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.all(x, axis=axis, keepdims=keepdim, out=out)


@op("any")
class AnyOf(Truth):
    """Whether some element over `axis` is true; false over nothing."""

    def kernel(xp, x, *, axis, keepdim=False):
        return xp.any(x, axis=axis, keepdims=keepdim)

    def kernel_out(xp, out, x, *, axis, keepdim=False):
        xp.any(x, axis=axis, keepdims=keepdim, out=out)


def prod(x: Tensor, axis: Any = None, keepdim: bool = False, dtype: Any = None, out: Tensor | None = None,
         name: str | None = None) -> Tensor:
    """The product over `axis` (None: all).   dtype: x is cast to it first; bools multiply in int64.

    >>> from minipd.ops.creation import to_tensor
    >>> prod(to_tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0).tolist()
    [3.0, 8.0]
    """
    x = as_tensor("prod", x)
    if dtype is not None or x.payload.dtype == dtypes.bool.np:
        x = cast(x, "int64" if dtype is None else dtype)
    return into(out, Prod(x, axis=normalize_axes("prod", axis, x.ndim), keepdim=bool(keepdim)))


def logsumexp(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """ln of the sum of e^x over `axis` (None: all), without overflow on the way.

    >>> from minipd.ops.creation import to_tensor
    >>> logsumexp(to_tensor([1000.0, 1000.0])).item()
    1000.6931762695312
    """
    x = as_floating("logsumexp", x)
    return into(out, LogSumExp(x, axis=normalize_axes("logsumexp", axis, x.ndim), keepdim=bool(keepdim)))


def all(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """Whether every element over `axis` (None: all axes) is true; any number but 0 is.

    >>> from minipd.ops.creation import to_tensor
    >>> all(to_tensor([[True, False], [True, True]]), axis=1).tolist()
    [False, True]
    """
    x = as_tensor("all", x)
    return into(out, AllOf(x, axis=normalize_axes("all", axis, x.ndim), keepdim=bool(keepdim)))


def any(x: Tensor, axis: Any = None, keepdim: bool = False, name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """Whether some element over `axis` (None: all axes) is true; any number but 0 is.

    >>> from minipd.ops.creation import to_tensor
    >>> any(to_tensor([[True, False], [False, False]]), axis=1).tolist()
    [True, False]
    """
    x = as_tensor("any", x)
    return into(out, AnyOf(x, axis=normalize_axes("any", axis, x.ndim), keepdim=bool(keepdim)))
