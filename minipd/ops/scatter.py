"""Writing elements by number: compositions of the rows in `by_number`, and their in-place forms."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.broadcast import Expand
from minipd.ops.by_number import IndexAdd, IndexPut, ScatterNdAdd, an_axis, require_index
from minipd.ops.cast import cast
from minipd.ops.creation import Full, shape_tuple, zeros
from minipd.ops.gather import number_list
from minipd.ops.indexing import numbers_of, tuples_of
from minipd.ops.indices import parse_index
from minipd.ops.making import into
from minipd.ops.math import where
from minipd.ops.reshape import Reshape, Unsqueeze

__all__ = ["index_add", "index_fill", "index_put", "scatter", "scatter_nd", "scatter_nd_add"]


def _same_dtype(what: str, x: Tensor, value: Tensor) -> None:
    if value.payload.dtype != x.payload.dtype:
        raise TypeError(f"{what}: expected values of dtype {x.dtype.name}, as {describe(x.payload)} has, got "
                        f"{describe(value.payload)}; cast one of them")


@whole
def scatter(x: Tensor, index: Tensor, updates: Tensor, overwrite: bool = True, name: str | None = None,
            out: Tensor | None = None) -> Tensor:
    """x with the rows of `updates` written at the row numbers `index`; or, if not `overwrite`, the sums of the rows of
    `updates` with the same number.

    index: int [n]; updates: [n, dimensions 1.. of x].  A 0-D index names one row, updates has its shape.

    >>> from minipd.ops.creation import to_tensor, zeros
    >>> index, updates = to_tensor([2, 0, 0]), to_tensor([1.0, 2.0, 3.0])
    >>> scatter(zeros([3]), index, updates).tolist(), scatter(zeros([3]), index, updates, overwrite=False).tolist()
    ([3.0, 0.0, 1.0], [5.0, 0.0, 1.0])
    """
    an_axis("scatter", 0, x)
    _same_dtype("scatter", x, updates)
    rows = number_list("scatter", index)
    tuples = Unsqueeze(rows, axis=(rows.ndim,))
    if overwrite:
        return into(out, IndexPut(x, tuples, updates))
    return into(out, ScatterNdAdd(IndexPut(x, tuples, 0), tuples, updates))


@whole
def scatter_nd_add(x: Tensor, index: Tensor, updates: Tensor, name: str | None = None) -> Tensor:
    """x with `updates` added at tuples of numbers.   index: int [..., k]; updates: [..., dimensions k.. of x]

    >>> from minipd.ops.creation import to_tensor, zeros
    >>> scatter_nd_add(zeros([2, 2]), to_tensor([[1, 0], [1, 0]]), to_tensor([1.0, 2.0])).tolist()
    [[0.0, 0.0], [3.0, 0.0]]
    """
    _same_dtype("scatter_nd_add", x, updates)
    require_index("scatter_nd_add", index.payload)
    return ScatterNdAdd(x, index, updates)


def scatter_nd(index: Tensor, updates: Tensor, shape: Any, name: str | None = None) -> Tensor:
    """Zeros of `shape`, with `updates` added at tuples of numbers.

    >>> from minipd.ops.creation import to_tensor
    >>> scatter_nd(to_tensor([[1], [3]]), to_tensor([5.0, 6.0]), [4]).tolist()
    [0.0, 5.0, 0.0, 6.0]
    """
    return scatter_nd_add(zeros(shape_tuple("scatter_nd", shape), updates.dtype), index, updates)


def index_add(x: Tensor, index: Tensor, axis: int, value: Tensor, alpha: Any = 1, name: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """x with alpha times the slices of `value` added at the numbers `index` along `axis`.

    >>> from minipd.ops.creation import to_tensor, zeros
    >>> index_add(zeros([3]), to_tensor([0, 0, 2]), 0, to_tensor([1.0, 2.0, 3.0])).tolist()
    [3.0, 0.0, 3.0]
    """
    _same_dtype("index_add", x, value)
    axis = an_axis("index_add", axis, x)
    if alpha != 1:
        value = cast(value * alpha, x.dtype)
    return into(out, IndexAdd(x, number_list("index_add", index), value, axis=axis))


def index_put(x: Tensor, indices: Any, value: Tensor, accumulate: bool = False, name: str | None = None) -> Tensor:
    """x with `value`, which broadcasts, written (or, if `accumulate`, added) at places of its leading dimensions.

    indices: int tensors, which broadcast against each other, one for each dimension; a mask stands for as many as it
    has dimensions.

    >>> from minipd.ops.creation import to_tensor, zeros
    >>> at = (to_tensor([0, 0, 1]), to_tensor([1, 1, 0]))
    >>> index_put(zeros([2, 2]), at, to_tensor([1.0, 2.0, 3.0]), accumulate=True).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """
    _same_dtype("index_put", x, value)
    found = parse_index(x, tuple(indices))
    if not found.arrays or not found.whole:
        raise ValueError(f"index_put: expected int tensors or masks as indices, got {len(indices)} others")
    tuples = tuples_of([numbers for _, numbers in numbers_of(found.arrays)])
    if not accumulate:
        return IndexPut(x, tuples, value)
    part = (*tuples.payload.shape[:-1], *x.payload.shape[tuples.payload.shape[-1]:])
    return ScatterNdAdd(x, tuples, Expand(value, shape=part))


def index_fill(x: Tensor, index: Tensor, axis: int, value: Any, name: str | None = None) -> Tensor:
    """x with `value`, a number or 0-D tensor, in the slices at the numbers `index` along `axis`.

    >>> from minipd.ops.creation import to_tensor
    >>> index_fill(to_tensor([[1, 2, 3], [4, 5, 6]]), to_tensor([0, 2]), 1, -1).tolist()
    [[-1, 2, -1], [-1, 5, -1]]
    """
    axis = an_axis("index_fill", axis, x)
    rows = number_list("index_fill", index)
    n = x.payload.shape[axis]
    named = IndexPut(Full(shape=(n,), value=False, dtype=dtypes.bool.np), Unsqueeze(rows, axis=(rows.ndim,)), True)
    if not isinstance(value, Tensor):
        value = x.payload.dtype.type(value).item()
    elif value.size != 1:
        raise ValueError(f"index_fill: expected a number or a 0-D tensor as value, got {describe(value.payload)}")
    else:
        value = cast(value.reshape([]), x.dtype)
    return where(Reshape(named, shape=(n, *(1,) * (x.ndim - axis - 1))), value, x)
