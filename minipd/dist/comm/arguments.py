"""The arguments of collectives, checked: what can be seen to be wrong on one rank is refused there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.dist.comm.errors import CommError
from minipd.dist.comm.reduction import REDUCTIONS
from minipd.framework import dtype as dtypes

__all__: list[str] = []

#: The largest tag that every MPI accepts.
MAX_TAG = 32767

_DTYPES = frozenset(t.np for t in dtypes.ALL)


def as_array(x: Any) -> np.ndarray:
    """x itself; numpy's scalars, which 0-D results turn into, become arrays again."""
    if type(x) is np.ndarray and x.dtype in _DTYPES:
        return x
    if not isinstance(x, (np.ndarray, np.generic)):
        raise TypeError(f"a communicator moves numpy arrays, got {type(x).__name__}")
    check_dtype(x)
    return np.asarray(x)


def check_dtype(x: Any) -> np.dtype:
    """The dtype of x, which must be one of minipd's: others have no common representation on all backends."""
    if x.dtype not in _DTYPES:
        names = ", ".join(t.name for t in dtypes.ALL)
        raise TypeError(f"a communicator moves arrays of {names}; got dtype {x.dtype!r}")
    return x.dtype


def check_axis(x: np.ndarray, axis: int) -> None:
    """Axes are counted from 0; negative ones have been normalised before."""
    if not 0 <= axis < x.ndim:
        raise ValueError(f"axis {axis} is not one of the {x.ndim} axes of an array of shape {x.shape}, counted from 0")


def check_sizes(ranks: tuple[int, ...], sizes: Sequence[int], x: np.ndarray | None = None,
                axis: int = 0) -> tuple[int, ...]:
    """One size >= 0 per member; together they make up x along `axis`."""
    sizes = tuple(sizes)
    if len(sizes) != len(ranks) or min(sizes) < 0:
        raise ValueError(f"sizes are one extent per member of the group {ranks}, none negative; got {sizes}")
    if x is not None and sum(sizes) != x.shape[axis]:
        raise CommError(f"sizes {sizes} add up to {sum(sizes)}, but axis {axis} of an array of shape {x.shape} has "
                        f"{x.shape[axis]}")
    return sizes


def check_peer(size: int, peer: int, tag: int) -> None:
    """A rank of the world, and a tag that MPI accepts."""
    if not 0 <= peer < size:
        raise ValueError(f"there is no rank {peer}: ranks are 0 to {size - 1}")
    if not 0 <= tag <= MAX_TAG:
        raise ValueError(f"a tag is a whole number from 0 to {MAX_TAG}, got {tag}")


def bad_op(op: str) -> ValueError:
    """The error for a reduction that does not exist."""
    return ValueError(f"a reduction is one of {', '.join(REDUCTIONS)}; got {op!r}")


def cut(x: np.ndarray, axis: int, sizes: Sequence[int]) -> list[np.ndarray]:
    """Views of x: consecutive chunks along `axis` with the given extents.

    >>> cut(np.arange(5), 0, (2, 0, 3))
    [array([0, 1]), array([], dtype=int64), array([2, 3, 4])]
    """
    before = (slice(None),) * axis
    chunks, start = [], 0
    for size in sizes:
        chunks.append(x[(*before, slice(start, start + size))])
        start += size
    return chunks


def without(shape: tuple[int, ...], axis: int) -> tuple[int | None, ...]:
    """The shape without what may differ between members, their extent along `axis`.

    >>> without((4, 5), 0)
    (None, 5)
    """
    return (*shape[:axis], None, *shape[axis + 1:])
