"""Axes and indices as Paddle's operators have them (negative, or none for all) and as our rows do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import DimExpr

__all__ = ["all_axes", "one_axis", "slice_range"]


def one_axis(axis: Any, rank: int) -> int:
    """
    >>> one_axis(-1, 3), one_axis((0,), 3)
    (2, 0)
    """
    if isinstance(axis, (tuple, list)):
        axis, = axis
    return int(axis) + rank if axis < 0 else int(axis)


def all_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes in order, each once; all if none are given.

    >>> all_axes((-1, 0), 3), all_axes((), 2)
    ((0, 2), (0, 1))
    """
    return tuple(range(rank)) if len(axes) == 0 else tuple(sorted({one_axis(a, rank) for a in axes}))


def slice_range(start: Any, end: Any, step: int, size: Any) -> tuple[Any, Any, int]:
    """Start and end as our rows have them: element i is number range(start, end, step)[i], within the size.

    >>> slice_range(-2, 2**31 - 1, 1, 5), slice_range(2**31 - 1, -2**31, -1, 4)
    ((3, 5, 1), (3, -1, -1))

    Raises: ValueError where it depends on a size that only the run knows.
    """
    if not any(isinstance(d, DimExpr) for d in (start, end, size)):
        start, end, step = slice(start, end, step).indices(size)
        return start, max(start, end) if step > 0 else min(start, end), step
    last = isinstance(end, int) and end >= 2 ** 31 - 1
    if step < 0 or isinstance(end, int) and not last and end > 0 and isinstance(size, DimExpr):
        if step < 0:
            raise ValueError(f"slice: expected a forward step over a size that only the run knows, got step {step}")
    if isinstance(start, int) and start < 0:
        start = size + start
    if last:
        end = size
    elif isinstance(end, int) and end < 0:
        end = size + end
    return start, end, step
