"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.joining import concat
from minipd.ops.making import into
from minipd.ops.promotion import as_tensor
from minipd.ops.reduce import Sum
from minipd.ops.scan import Cumsum
from minipd.ops.shapes import a_number, normalize_axis, require_inexact
from minipd.ops.slicing import slice

__all__ = ["cumulative_trapezoid", "diff", "trapezoid"]


def _neighbours(x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All elements along an axis but the last, and all but the first."""
    return slice(x, [axis], [0], [-1]), slice(x, [axis], [1], [x.payload.shape[axis]])


def diff(x: Tensor, n: int = 1, axis: int = -1, prepend: Tensor | None = None, append: Tensor | None = None,
         name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """What each element along `axis` has more than the one before it, n times over; of bools, whether they differ.

    prepend, append: tensors that come before and behind x along the axis.
    Raises: ValueError for a 0-D tensor, and n below 1.

    >>> from minipd.ops.creation import to_tensor
    >>> diff(to_tensor([1, 4, 9])).tolist(), diff(to_tensor([1, 4, 9]), n=2).tolist()
    ([3, 5], [2])
    """
    x = as_tensor("diff", x)
    if not isinstance(n, int) or n < 1 or x.ndim == 0:
        raise ValueError(f"diff: expected n >= 1 and a tensor of at least one dimension, got n={n!r} and "
                         f"{describe(x.payload)}")
    axis = normalize_axis("diff", axis, x.ndim)
    parts = [as_tensor("diff", part) for part in (prepend, x, append) if part is not None]
    x = concat(parts, axis) if len(parts) > 1 else x
    for _ in range(n):
        if x.payload.shape[axis] == 0:      # nothing has no differences, however often they are taken
            break
        before, behind = _neighbours(x, axis)
        x = behind != before if x.payload.dtype == dtypes.bool.np else behind - before
    return into(out, x)


def _areas(what: str, y: Any, x: Any, dx: float | None, axis: int) -> tuple[Tensor, int]:
    """The areas between neighbours."""
    if x is not None and dx is not None:
        raise ValueError(f"{what}: expected x or dx, got both")
    y = as_tensor(what, y)
    require_inexact(what, y.payload)
    axis = normalize_axis(what, axis, y.ndim)
    width: Any = 1.0 if dx is None else a_number(what, "dx", dx)
    if x is not None:
        x = as_tensor(what, x)
        if x.ndim == 1:
            width = diff(x).reshape([-1] + [1] * (y.ndim - axis - 1))
        else:
            width = diff(x, axis=axis)
    left, right = _neighbours(y, axis)
    return (left + right) * width / 2.0, axis


def trapezoid(y: Tensor, x: Tensor | None = None, dx: float | None = None, axis: int = -1,
              name: str | None = None) -> Tensor:
    """The integral of y along `axis`, by the trapezoidal rule.

    x: where the values lie, of y's shape, or 1-D for that axis; else they are `dx` (1) apart.

    >>> from minipd.ops.creation import to_tensor
    >>> trapezoid(to_tensor([1.0, 3.0, 5.0]), dx=2.0).item()
    12.0
    """
    areas, axis = _areas("trapezoid", y, x, dx, axis)
    return Sum(areas, axis=(axis,))


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: float | None = None, axis: int = -1,
                         name: str | None = None) -> Tensor:
    """The integrals of y along `axis` up to each element but the first, by the trapezoidal rule (see `trapezoid`).

    >>> from minipd.ops.creation import to_tensor
    >>> cumulative_trapezoid(to_tensor([1.0, 3.0, 5.0])).tolist()
    [2.0, 6.0]
    """
    areas, axis = _areas("cumulative_trapezoid", y, x, dx, axis)
    return Cumsum(areas, axis=axis)
