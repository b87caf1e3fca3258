"""Reading and writing elements by number: five rows, on which indexing and the scatter functions stand.

    gather(x, index; axis)        slices along one axis          its adjoint: index_add
    gather_nd(x, index)           slices at tuples of numbers    its adjoint: scatter_nd_add
    index_put(x, index, value)    writes at tuples of numbers

A tuple of k numbers names a slice of the first k dimensions; tuples stand in the last dimension of `index`.  Negative
numbers count from the end.  Where a place is named twice, adding adds both, and of two writes the last one stays.

`window` is a *local* attribute of the rows that write, which only the SPMD rules set: (how many the whole axis has, the
first that this operand holds), one such pair for each numbered dimension where tuples name a slice; None where the
operand is the whole.  What falls to another shard is not written; a number that nobody has is an error here too.
"""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.accumulate import add_at
from minipd.ops.broadcast import as_operand, reduce_to
from minipd.ops.creation import Arange, Full, full_like
from minipd.ops.embedding import owned_rows
from minipd.ops.logic import equal
from minipd.ops.reshape import Reshape
from minipd.ops.shapes import normalize_axis, shape_of, shapes_agree, stretches

__all__: list[str] = []


# ------------------------------------------------------------------------------------------------ what rows share
def require_index(what: str, index: Any) -> None:
    """Raise TypeError unless `index` is an int tensor."""
    if index.dtype not in dtypes.INTS:
        raise TypeError(f"{what}: expected an int index, got {describe(index)}; cast it first, index.astype('int64')")


def positions(xp: Any, what: str, index: Any, n: int) -> Any:
    """Numbers of a dimension of size n, counted from the front.

    Raises: IndexError outside of -n .. n-1.
    """
    if index.size:
        low, high = index.min(), index.max()
        if low < -n or high >= n:
            raise IndexError(f"{what}: expected numbers in {-n} .. {n - 1}, of a dimension of size {n}, got "
                             f"{low if low < -n else high}")
        if low < 0:
            return xp.where(index < 0, index.astype(xp.int64) + n, index)
    return index


def columns(xp: Any, what: str, index: Any, shape: tuple) -> tuple:
    """The numbers of each dimension: what an array is indexed with."""
    return tuple(positions(xp, what, index[..., i], shape[i]) for i in range(index.shape[-1]))


def places(xp: Any, what: str, index: Any, part: Any, shape: tuple, window: Any) -> tuple[tuple, Any]:
    """(what to index `shape` with, what of `part` belongs there): all, or, with a window, what falls into it.

    part: a number, or what broadcasts to the slices at the tuples of numbers `index`.
    """
    if window is None:
        return columns(xp, what, index, shape), part
    found = columns(xp, what, index, tuple(total for total, _ in window))
    local = [owned_rows(xp, at, n, first) for at, n, (_, first) in zip(found, shape, window, strict=False)]
    owned = functools.reduce(xp.logical_and, (here for _, here in local))
    part = xp.broadcast_to(part, (*index.shape[:-1], *shape[index.shape[-1]:]))
    return tuple(at[owned] for at, _ in local), part[owned]


def gathered_shape(what: str, x: Any, index: Any) -> tuple:
    """The shape of the slices of x at tuples of numbers."""
    require_index(what, index)
    k = index.shape[-1] if index.shape else None
    if k is None or is_symbolic(k) or not 1 <= k <= len(x.shape):
        raise ValueError(f"{what}: expected an index whose last dimension has size 1 to {len(x.shape)}, the numbers "
                         f"that name a slice of {describe(x)}, got {describe(index)}")
    return (*index.shape[:-1], *x.shape[k:])


def an_axis(what: str, axis: Any, x: Tensor) -> int:
    """An axis of x, from the front.  Raises: ValueError for a 0-D tensor too, which has none."""
    if x.ndim == 0:
        raise ValueError(f"{what}: expected a tensor of at least 1 dimension, got {describe(x.payload)}")
    return normalize_axis(what, axis, x.ndim)


# --------------------------------------------------------------------------------------------------------- rows
@op("gather", Trait.EXACT)
class Gather:
    """The slices of x at the numbers `index` along `axis`; the dimensions of index stand in place of it."""

    def infer_meta(x, index, *, axis=0):
        require_index("gather", index)
        return Meta((*x.shape[:axis], *index.shape, *x.shape[axis + 1:]), x.dtype)

    def kernel(xp, x, index, *, axis=0):
        return x[(slice(None),) * axis + (positions(xp, "gather", index, x.shape[axis]),)]

    def kernel_out(xp, out, x, index, *, axis=0):
        at = positions(xp, "gather", index, x.shape[axis])
        if out.size:
            xp.take(x, at, axis=axis, out=out, mode="clip")     # any mode but the default writes into out directly

    def vjp_x(g, index, x: Meta, axis):
        return IndexAdd(full_like(as_operand(x), 0.0, g.dtype), index, g, axis=axis)


@op("index_add", Trait.INPLACE)
class IndexAdd:
    """x with the slices of `value` added at the numbers `index` along `axis`."""

    inplace = {0: 0}

    def infer_meta(x, index, value, *, axis=0, window=None):
        require_index("index_add", index)
        expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1:])
        if not shapes_agree(value.shape, expected, "index_add: the shape of value"):
            raise ValueError(f"index_add: expected a value of shape {list(expected)}, for {describe(x)} and "
                             f"{describe(index)} along axis {axis}, got {describe(value)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, value, *, axis=0, window=None):
        out = xp.array(x)
        _index_add(xp, out, index, value, axis, window)
        return out

    def kernel_out(xp, out, x, index, value, *, axis=0, window=None):
        if out is not x:
            out[...] = x
        _index_add(xp, out, index, value, axis, window)

    def vjp_x(g):
        return g

    def vjp_value(g, index, axis):
        return Gather(g, index, axis=axis)


def _index_add(xp: Any, out: Any, index: Any, value: Any, axis: int, window: Any) -> None:
    if value.shape != (*out.shape[:axis], *index.shape, *out.shape[axis + 1:]):
        raise ValueError("index_add: a value of another shape")         # `infer_meta` says it better
    value = value.reshape(*value.shape[:axis], index.size, *out.shape[axis + 1:])
    out, value = xp.moveaxis(out, axis, 0), xp.moveaxis(value, axis, 0)
    at, value = places(xp, "index_add", index.reshape(-1, 1), value, out.shape, None if window is None else (window,))
    add_at(xp, out, at, value)


@op("gather_nd", Trait.EXACT, Trait.ALLOCATES)
class GatherNd:
    """out[...] = x[index[..., 0], index[..., 1], ...].   index: int [..., k] -> [..., dimensions k.. of x]"""

    def infer_meta(x, index):
        return Meta(gathered_shape("gather_nd", x, index), x.dtype)

    def kernel(xp, x, index):
        return x[columns(xp, "gather_nd", index, x.shape)]

    def vjp_x(g, index, x: Meta):
        return ScatterNdAdd(full_like(as_operand(x), 0.0, g.dtype), index, g)


@op("scatter_nd_add", Trait.INPLACE)
class ScatterNdAdd:
    """x with `updates` added at tuples of numbers.   index: int [..., k]; updates: [..., dimensions k.. of x]"""

    inplace = {0: 0}

    def infer_meta(x, index, updates, *, window=None):
        expected = gathered_shape("scatter_nd_add", x, index)
        if not shapes_agree(updates.shape, expected, "scatter_nd_add: the shape of updates"):
            raise ValueError(f"scatter_nd_add: expected updates of shape {list(expected)}, for {describe(x)} and an "
                             f"index {describe(index)}, got {describe(updates)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, updates, *, window=None):
        out = xp.array(x)
        _scatter_add(xp, out, index, updates, window)
        return out

    def kernel_out(xp, out, x, index, updates, *, window=None):
        if out is not x:
            out[...] = x
        _scatter_add(xp, out, index, updates, window)

    def vjp_x(g):
        return g

    def vjp_updates(g, index):
        return GatherNd(g, index)


def _scatter_add(xp: Any, out: Any, index: Any, updates: Any, window: Any) -> None:
    if updates.shape != (*index.shape[:-1], *out.shape[index.shape[-1]:]):
        raise ValueError("scatter_nd_add: updates of another shape")    # `infer_meta` says it better
    count = index.shape[-1]
    index = index.reshape(-1, count)
    updates = updates.reshape(len(index), *out.shape[count:])
    add_at(xp, out, *places(xp, "scatter_nd_add", index, updates, out.shape, window))


@op("index_put", Trait.EXACT, Trait.INPLACE)
class IndexPut:
    """x with `value`, which broadcasts, written at tuples of numbers.   index: int [..., k]"""

    inplace = {0: 0}

    def infer_meta(x, index, value, *, window=None):
        part = gathered_shape("index_put", x, index)
        if not stretches("index_put", shape_of(value), part):
            raise ValueError(f"index_put: expected a value that broadcasts to the part written, of shape {list(part)}, "
                             f"got shape {list(shape_of(value))}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, value, *, window=None):
        out = xp.array(x)
        at, part = places(xp, "index_put", index, value, x.shape, window)
        out[at] = part
        return out

    def kernel_out(xp, out, x, index, value, *, window=None):
        if out is not x:
            out[...] = x
        at, part = places(xp, "index_put", index, value, x.shape, window)
        out[at] = part

    def vjp_x(g, index):
        return IndexPut(g, index, 0.0)

    def vjp_value(g, index, value: Meta):
        return reduce_to(_of_the_last(GatherNd(g, index), index, g), value)


def _of_the_last(part: Tensor, index: Tensor, g: Tensor) -> Tensor:
    """The gradient of what was written: a write that a later one at the same place has replaced has none."""
    batch = index.payload.shape[:-1]
    k = index.payload.shape[-1]
    order = Reshape(Arange(start=0, stop=prod(batch), step=1, dtype=dtypes.int64.np), shape=batch)
    written = IndexPut(Full(shape=tuple(g.payload.shape[:k]), value=-1, dtype=dtypes.int64.np), index, order)
    stays = equal(GatherNd(written, index), order).astype(part.dtype)
    return part * Reshape(stays, shape=(*batch, *(1,) * (g.ndim - k)))
