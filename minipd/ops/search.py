"""Where elements are: by value in a sorted sequence, by truth, and which are the same.

How many elements are true, or differ, depends on values: those functions run on tensors that have values, and raise
TypeError while tracing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import broadcast_tensors
from minipd.ops.creation import to_tensor
from minipd.ops.embedding import take_along_axis
from minipd.ops.making import into
from minipd.ops.promotion import promoted
from minipd.ops.shapes import normalize_axis, shapes_agree

__all__ = ["argwhere", "bucketize", "masked_select", "nonzero", "searchsorted", "unique", "unique_consecutive"]


# ------------------------------------------------------------------------------------------ sorted sequences
@op("searchsorted", Trait.DISCRETE, Trait.ALLOCATES)
class SearchSorted:
    """How many elements of the last dimension of `sorted_sequence` are less than each value (`right`: or equal).

    sorted_sequence: [n], or [..., n] with the leading dimensions of `values`.  NaN is greater than every number.
    """

    def infer_meta(sorted_sequence, values, *, right=False, out_int32=False):
        _check_sequence(sorted_sequence, values)
        return Meta(values.shape, _number_dtype(out_int32))

    def kernel(xp, sorted_sequence, values, *, right=False, out_int32=False):
        n = sorted_sequence.shape[-1]
        if sorted_sequence.ndim == 1:
            found = xp.searchsorted(sorted_sequence, values, side="right" if right else "left")
        else:
            found = _bisect(xp, sorted_sequence, values, right)
        return xp.where(values != values, n, found).astype(_number_dtype(out_int32))       # noqa: PLR0124  (NaN differs from itself)


def _check_sequence(sequence: Any, values: Any) -> None:
    lead = sequence.shape[:-1]
    if not sequence.shape or lead and not shapes_agree(values.shape[:-1], lead, "searchsorted: the leading dimensions"):
        raise ValueError("searchsorted: expected a sequence of 1 dimension, or of the values' leading dimensions, got "
                         f"{describe(sequence)} and {describe(values)}")


def _number_dtype(out_int32: bool) -> np.dtype:
    return (dtypes.int32 if out_int32 else dtypes.int64).np


def _bisect(xp: Any, sequences: Any, values: Any, right: bool) -> Any:
    """Each value in its own sequence: halve what is left of all of them at once, as often as the length takes."""
    n = sequences.shape[-1]
    low = xp.zeros(values.shape, xp.int64)
    high = xp.full(values.shape, n, xp.int64)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        at = xp.take_along_axis(sequences, xp.minimum(middle, n - 1), -1)
        above = (at <= values) if right else (at < values)
        low, high = xp.where(above & (low < high), middle + 1, low), xp.where(above, high, xp.minimum(middle, high))
    return low


def searchsorted(sorted_sequence: Tensor, values: Tensor, out_int32: bool = False, right: bool = False,
                 name: str | None = None, *, side: str | None = None, out: Tensor | None = None,
                 sorter: Tensor | None = None) -> Tensor:
    """Where each value belongs in the last dimension of `sorted_sequence`: before equal elements, or behind (`right`).

    sorted_sequence: [n], or [..., n] with the leading dimensions of `values`.  Result: int64 (or int32), values' shape.
    side: "left" or "right", instead of `right`.  sorter: the order of a sequence that is not sorted (of `argsort`).

    >>> searchsorted(to_tensor([1, 3, 5]), to_tensor([3, 6])).tolist()
    [1, 3]
    >>> searchsorted(to_tensor([[1, 3, 5], [2, 4, 6]]), to_tensor([[3], [4]]), right=True).tolist()
    [[2], [2]]
    """
    if side not in (None, "left", "right") or side == "left" and right:
        raise ValueError(f"searchsorted: expected side to be left or right, and to agree with right={right}, got "
                         f"{side!r}")
    if sorter is not None:
        sorted_sequence = take_along_axis(sorted_sequence, sorter, -1)
    sequence, values = promoted("searchsorted", sorted_sequence, values if isinstance(values, Tensor) else
                                to_tensor(values))
    _check_sequence(sequence.payload, values.payload)
    right = bool(right) or side == "right"
    return into(out, SearchSorted(sequence, values, right=right, out_int32=bool(out_int32)))


def bucketize(x: Tensor, sorted_sequence: Tensor, out_int32: bool = False, right: bool = False,
              name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The number of the interval that each element of x is in, between the bounds `sorted_sequence` of 1 dimension.

    >>> bucketize(to_tensor([0, 8, 4, 99]), to_tensor([2, 4, 8])).tolist()
    [0, 2, 1, 3]
    """
    if sorted_sequence.ndim != 1:
        raise ValueError(f"bucketize: expected bounds of 1 dimension, got {describe(sorted_sequence.payload)}")
    return searchsorted(sorted_sequence, x, out_int32, right, out=out)


# ------------------------------------------------------------------------------------------------------ truth
def nonzero(x: Tensor, as_tuple: bool = False, *, out: Tensor | None = None) -> Any:
    """The places of the elements that are not 0.   -> int64 [how many, number of dimensions], or one [how many] each

    >>> nonzero(to_tensor([[0, 7], [8, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    places = np.argwhere(x.values("nonzero(), whose size depends on values"))
    if as_tuple:
        return tuple(Tensor(np.ascontiguousarray(column)) for column in places.T)
    return into(out, Tensor(places))


def argwhere(input: Tensor) -> Tensor:
    """The places of the elements that are not 0.   -> int64 [how many, number of dimensions]"""
    return nonzero(input)


def masked_select(x: Tensor, mask: Tensor, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The elements of x where the mask holds, in row-major order.   x and mask broadcast -> [how many]

    >>> masked_select(to_tensor([[1, 2], [3, 4]]), to_tensor([[True], [False]])).tolist()
    [1, 2]
    """
    if mask.payload.dtype != dtypes.bool.np:
        raise TypeError(f"masked_select: expected a bool mask, got {describe(mask.payload)}")
    x, mask = broadcast_tensors([x, mask])
    return into(out, x[mask].reshape([-1]))


# --------------------------------------------------------------------------------------------------- the same
def unique(x: Tensor, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
           axis: Any = None, dtype: Any = "int64", sorted: bool = True, name: str | None = None) -> Any:
    """The different elements of x (or its different slices along `axis`), sorted; as asked for also where each stands
    first, the number of the result that each element of x is, and how often each comes.   dtype: of these numbers

    >>> [t.tolist() for t in unique(to_tensor([2, 3, 3, 1]), return_inverse=True, return_counts=True)]
    [[1, 2, 3], [1, 2, 2, 0], [1, 1, 2]]
    """
    at = None if axis is None or axis == [] or not x.ndim else normalize_axis("unique", axis, x.ndim)
    values = x.values("unique(), whose size depends on values")
    wide = values.astype(np.float32) if values.dtype == dtypes.bfloat16.np else values
    found, *numbers = np.unique(wide, True, True, True, axis=at)
    return _answers((found.astype(values.dtype), *numbers), (return_index, return_inverse, return_counts), dtype)


def _answers(found: tuple, asked: tuple, dtype: Any) -> Any:
    """Values, and those of the numbers about them that were asked for."""
    numbers = [Tensor(n.reshape(-1).astype(dtypes.to_np(dtype))) for n, wanted in zip(found[1:], asked, strict=True)
               if wanted]
    return (Tensor(found[0]), *numbers) if numbers else Tensor(found[0])


def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, axis: Any = None,
                       dtype: Any = "int64", name: str | None = None) -> Any:
    """x (or its slices along `axis`) without those that equal the one before; as asked for also the number of the
    result that each element of x is, and how many each stands for.

    >>> [t.tolist() for t in unique_consecutive(to_tensor([1, 1, 2, 1]), return_counts=True)]
    [[1, 2, 1], [2, 1, 1]]
    """
    values = x.values("unique_consecutive(), whose size depends on values")
    at = None if axis is None or axis == [] or not x.ndim else normalize_axis("unique_consecutive", axis, x.ndim)
    slices = values.reshape(-1) if at is None else np.moveaxis(values, at, 0)
    new = np.ones(len(slices), bool)
    new[1:] = (slices[1:] != slices[:-1]).any(axis=tuple(range(1, slices.ndim)))
    kept = slices[new] if at is None else np.ascontiguousarray(np.moveaxis(slices[new], 0, at))
    counts = np.diff(np.append(np.flatnonzero(new), len(slices)))
    return _answers((kept, np.cumsum(new) - 1, counts), (return_inverse, return_counts), dtype)
