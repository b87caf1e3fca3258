"""Running reductions along an axis: cumulative sums, products and extremes."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxisGrad
from minipd.ops.making import into
from minipd.ops.math import where
from minipd.ops.promotion import as_floating, as_tensor
from minipd.ops.shapes import normalize_axis, require_floating, require_numbers

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]

INT64 = dtypes.int64.np


class Scan:
    """exclusive: each result leaves its own element out.  reverse: from the end of the axis to its beginning."""

    def infer_meta(what, x, *, axis, exclusive=False, reverse=False):
        require_numbers(what, x)
        return Meta(x.shape, x.dtype)


@op("cumsum")
class Cumsum(Scan):
    """The sums of the elements so far along `axis`."""

    def kernel(xp, x, *, axis, exclusive=False, reverse=False):
        return _scan(xp, "add", xp.empty_like(x), x, axis, exclusive, reverse)

    def kernel_out(xp, out, x, *, axis, exclusive=False, reverse=False):
        _scan(xp, "add", out, x, axis, exclusive, reverse)

    def vjp_x(g, axis, exclusive, reverse):
        return Cumsum(g, axis=axis, exclusive=exclusive, reverse=not reverse)


@op("cumprod")
class Cumprod(Scan):
    """The products of the elements so far along `axis`."""

    def kernel(xp, x, *, axis, exclusive=False, reverse=False):
        return _scan(xp, "multiply", xp.empty_like(x), x, axis, exclusive, reverse)

    def kernel_out(xp, out, x, *, axis, exclusive=False, reverse=False):
        _scan(xp, "multiply", out, x, axis, exclusive, reverse)

    def vjp_x(g, x, out, axis, exclusive, reverse):
        """sum of g * out / x over the products that x is in.  Where products hold a 0, only those count in which it is
        the 0 itself that varies: then it is the first, and they are reckoned with a 1 in its place."""
        zero = x == 0.0
        zeros = Cumsum(cast(zero, INT64), axis=axis, reverse=reverse)
        first = zero & (zeros == 1)
        factors = Cumprod(where(first, 1.0, x), axis=axis, exclusive=exclusive, reverse=reverse)

        def total(products: Tensor) -> Tensor:
            return Cumsum(g * products, axis=axis, exclusive=exclusive, reverse=not reverse)
        return where(zeros == 0, total(out) / where(zero, 1.0, x), where(first, total(factors), 0.0))


def _scan(xp: Any, function: str, out: Any, x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    """Into `out`, which is returned."""
    target = out
    if x.ndim == 0:
        x, target = x.reshape(1), out.reshape(1)
    x, target = xp.moveaxis(x, axis, 0), xp.moveaxis(target, axis, 0)
    if reverse:
        x, target = x[::-1], target[::-1]
    if exclusive:
        target[:1] = getattr(xp, function).identity
        x, target = x[:-1], target[1:]
    getattr(xp, function).accumulate(x, axis=0, out=target, dtype=x.dtype)
    return out


@op("logcumsumexp")
class LogCumsumExp:
    """ln of the sums of e^x so far along `axis`, without overflow on the way."""

    def infer_meta(x, *, axis, reverse=False):
        require_floating("logcumsumexp", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, axis, reverse=False):
        return _scan(xp, "logaddexp", xp.empty_like(x), x, axis, False, reverse)

    def kernel_out(xp, out, x, *, axis, reverse=False):
        _scan(xp, "logaddexp", out, x, axis, False, reverse)

    def vjp_x(g, x, out, axis, reverse):
        """sum of g e^(x - out) over the sums that x is in, by logarithms again: those of g > 0 and of g < 0."""
        least = dtypes.finfo(dtypes.of(g.payload.dtype)).min / 4.0       # for ln 0: without infinity there is no NaN

        def part(g: Tensor) -> Tensor:
            logs = where(g > 0.0, log(where(g > 0.0, g, 1.0)), least) - out
            return exp(LogCumsumExp(logs, axis=axis, reverse=not reverse) + x)
        return part(g) - part(-g)


class RunningExtreme:
    """out, and the index of the element that it is: of equal ones the last."""

    traits = (Trait.MULTI, Trait.EXACT)
    outputs = ("out", "indices")

    def infer_meta(what, x, *, axis, dtype=INT64):
        require_numbers(what, x)
        return Meta(x.shape, x.dtype), Meta(x.shape, dtype)

    def vjp_x(gs: Any, x: Meta, indices, axis):
        if gs[0] is None or not x.shape:
            return gs[0]
        return TakeAlongAxisGrad(gs[0], indices, as_operand(x), axis=axis)


@op("cummax")
class Cummax(RunningExtreme):
    """The largest element so far along `axis`, and its index; from the first NaN on, NaN."""

    def kernel(xp, x, *, axis, dtype=INT64):
        return _running_extreme(xp, "maximum", x, axis, dtype)

    def kernel_out(xp, out, x, *, axis, dtype=INT64):
        out[0][...], out[1][...] = _running_extreme(xp, "maximum", x, axis, dtype)


@op("cummin")
class Cummin(RunningExtreme):
    """The smallest element so far along `axis`, and its index; from the first NaN on, NaN."""

    def kernel(xp, x, *, axis, dtype=INT64):
        return _running_extreme(xp, "minimum", x, axis, dtype)

    def kernel_out(xp, out, x, *, axis, dtype=INT64):
        out[0][...], out[1][...] = _running_extreme(xp, "minimum", x, axis, dtype)


def _running_extreme(xp: Any, function: str, x: Any, axis: int, dtype: Any) -> tuple[Any, Any]:
    """An element that equals the extreme so far is the extreme; the last of them is the one with the largest index."""
    if x.ndim == 0:
        return xp.array(x), xp.zeros((), dtype)
    out = getattr(xp, function).accumulate(x, axis=axis)
    places = xp.arange(x.shape[axis], dtype=dtype).reshape((-1,) + (1,) * (x.ndim - axis - 1))
    reached = xp.where((x == out) | (x != x), places, dtype.type(0))
    return out, xp.maximum.accumulate(reached, axis=axis)


# ------------------------------------------------------------------------------------------- public functions
def _along(what: str, x: Tensor, axis: Any) -> tuple[Tensor, int]:
    """The operand, flattened if no axis is given, and the axis."""
    if axis is None:
        return x.reshape([-1]), 0
    return x, normalize_axis(what, axis, x.ndim)


def cumsum(x: Tensor, axis: Any = None, dtype: Any = None, name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """The sums of the elements so far along `axis` (None: of the flattened tensor).  bool and ints add up in int64.

    >>> from minipd.ops.creation import to_tensor
    >>> cumsum(to_tensor([[1, 2], [3, 4]])).tolist(), cumsum(to_tensor([[1, 2], [3, 4]]), axis=0).tolist()
    ([1, 3, 6, 10], [[1, 2], [4, 6]])
    """
    x = as_tensor("cumsum", x)
    if dtype is not None or x.payload.dtype not in dtypes.INEXACT:
        x = cast(x, INT64 if dtype is None else dtype)
    x, axis = _along("cumsum", x, axis)
    return into(out, Cumsum(x, axis=axis))


def cumprod(x: Tensor, dim: Any = None, *, dtype: Any = None, out: Tensor | None = None,
            name: str | None = None) -> Tensor:
    """The products of the elements so far along `dim` (None: of the flattened tensor).

    >>> from minipd.ops.creation import to_tensor
    >>> cumprod(to_tensor([1, 2, 3, 4]), dim=0).tolist()
    [1, 2, 6, 24]
    """
    x = as_tensor("cumprod", x)
    if dtype is not None or x.payload.dtype == dtypes.bool.np:
        x = cast(x, INT64 if dtype is None else dtype)
    x, dim = _along("cumprod", x, dim)
    return into(out, Cumprod(x, axis=dim))


def logcumsumexp(x: Tensor, axis: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """ln of the sums of e^x so far along `axis` (None: of the flattened tensor), without overflow on the way.

    >>> from minipd.ops.creation import to_tensor
    >>> logcumsumexp(to_tensor([1000.0, 1000.0])).tolist()
    [1000.0, 1000.6931762695312]
    """
    x = as_floating("logcumsumexp", x)
    x, axis = _along("logcumsumexp", x if dtype is None else cast(x, dtype), axis)
    return LogCumsumExp(x, axis=axis)


def cummax(x: Tensor, axis: Any = None, dtype: Any = "int64", name: str | None = None) -> tuple[Tensor, Tensor]:
    """The largest element so far along `axis` (None: of the flattened tensor), and its index, of equal ones the last.

    dtype: of the indices, int32 or int64.

    >>> from minipd.ops.creation import to_tensor
    >>> largest, index = cummax(to_tensor([1, 3, 2, 3]))
    >>> largest.tolist(), index.tolist()
    ([1, 3, 3, 3], [0, 1, 1, 3])
    """
    return _extremes(Cummax, x, axis, dtype)


def cummin(x: Tensor, axis: Any = None, dtype: Any = "int64", name: str | None = None) -> tuple[Tensor, Tensor]:
    """The smallest element so far along `axis` (None: of the flattened tensor), and its index, of equal ones the last.

    dtype: of the indices, int32 or int64.

    >>> from minipd.ops.creation import to_tensor
    >>> smallest, index = cummin(to_tensor([3, 1, 2, 1]))
    >>> smallest.tolist(), index.tolist()
    ([3, 1, 1, 1], [0, 1, 1, 3])
    """
    return _extremes(Cummin, x, axis, dtype)


def _extremes(row: Any, x: Any, axis: Any, dtype: Any) -> tuple[Tensor, Tensor]:
    d = dtypes.to_np(dtype)
    if d not in (INT64, dtypes.int32.np):
        raise TypeError(f"{row.name}: expected dtype int32 or int64 for the indices, got {dtypes.of(d).name}")
    x, axis = _along(row.name, as_tensor(row.name, x), axis)
    return row(x, axis=axis, dtype=d)
