"""The product of a chain of matrices, in the cheapest order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.dim import size_hint
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.linalg import matmul

__all__ = ["multi_dot"]


def multi_dot(x: Sequence[Tensor], name: str | None = None) -> Tensor:
    """The product of two or more matrices, in the order that takes the fewest multiplications.

    The first may be a vector, a row, and the last, a column; such a dimension does not stay.
    Raises: ValueError for fewer than two tensors, or sizes that do not fit.

    >>> from minipd.ops.creation import ones
    >>> multi_dot([ones([2, 3]), ones([3, 4]), ones([4])]).tolist()
    [12.0, 12.0]
    """
    xs = list(x)
    if len(xs) < 2:
        raise ValueError(f"multi_dot: expected at least two tensors, got {len(xs)}")
    row, column = xs[0].ndim == 1, xs[-1].ndim == 1
    if row:
        xs[0] = xs[0].unsqueeze(0)
    if column:
        xs[-1] = xs[-1].unsqueeze(1)
    for v in xs:
        if v.ndim != 2:
            raise ValueError(f"multi_dot: expected matrices (the first and the last may be vectors), got {describe(v)}")
    out = _chain(xs, _best_splits([xs[0].payload.shape[0], *(v.payload.shape[1] for v in xs)]), 0, len(xs) - 1)
    out = out.squeeze(0) if row else out
    return out.squeeze(-1) if column else out


def _best_splits(sizes: list) -> dict[tuple[int, int], int]:
    """(first, last) of a chain of matrices -> where to split it.   Matrix i is [sizes[i], sizes[i + 1]].

    From short chains to long ones: the cheapest split of each.  (Cormen et al., "Introduction to Algorithms", 15.2.)
    """
    n = len(sizes) - 1
    cost: dict[tuple[int, int], Any] = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = {k: cost[i, k] + cost[k + 1, j] + size_hint(sizes[i]) * size_hint(sizes[k + 1])
                     * size_hint(sizes[j + 1]) for k in range(i, j)}
            splits[i, j] = min(costs, key=costs.__getitem__)
            cost[i, j] = costs[splits[i, j]]
    return splits


def _chain(xs: list[Tensor], splits: dict, first: int, last: int) -> Tensor:
    if first == last:
        return xs[first]
    k = splits[first, last]
    return matmul(_chain(xs, splits, first, k), _chain(xs, splits, k + 1, last))
