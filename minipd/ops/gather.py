"""Reading and writing elements by number: five rows, on which indexing and the scatter functions stand.

    gather(x, index; axis)        slices along one axis          its adjoint: index_add
    gather_nd(x, index)           slices at tuples of numbers    its adjoint: scatter_nd_add
    index_put(x, index, value)    writes at tuples of numbers

A tuple of k numbers names a slice of the first k dimensions; tuples stand in the last dimension of `index`.  Negative
numbers count from the end.  Where a place is named twice, adding adds both, and of two writes the last one stays.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand, reduce_to
from minipd.ops.cast import cast
from minipd.ops.creation import Arange, Full, full_like
from minipd.ops.division import remainder
from minipd.ops.logic import equal, logical_and
from minipd.ops.making import into
from minipd.ops.math import maximum, minimum, where
from minipd.ops.reshape import Reshape
from minipd.ops.shapes import broadcast_shapes, normalize_axis, shape_of, shapes_agree

__all__ = ["gather", "gather_nd", "index_select", "shard_index", "take"]


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


def add_at(xp: Any, out: Any, places: tuple, values: Any) -> None:
    """out[places] += values, places named several times adding up: sorted by place and summed run by run, which is as
    exact as adding one by one, and many times faster than `add.at`.   places: int [n] each; values: [n, ...]"""
    if not values.size:
        return
    order = xp.lexsort(xp.stack(places[::-1]))
    places = tuple(p[order] for p in places)
    new = xp.ones(len(order), bool)
    new[1:] = False
    for p in places:
        new[1:] |= p[1:] != p[:-1]
    first = xp.flatnonzero(new)
    out[tuple(p[first] for p in places)] += xp.add.reduceat(values[order], first, axis=0, dtype=values.dtype)


def gathered_shape(what: str, x: Any, index: Any) -> tuple:
    """The shape of the slices of x at tuples of numbers."""
    require_index(what, index)
    k = index.shape[-1] if index.shape else None
    if k is None or is_symbolic(k) or not 1 <= k <= len(x.shape):
        raise ValueError(f"{what}: expected an index whose last dimension has size 1 to {len(x.shape)}, the numbers "
                         f"that name a slice of {describe(x)}, got {describe(index)}")
    return (*index.shape[:-1], *x.shape[k:])


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

    def infer_meta(x, index, value, *, axis=0):
        require_index("index_add", index)
        expected = (*x.shape[:axis], *index.shape, *x.shape[axis + 1:])
        if not shapes_agree(value.shape, expected, "index_add: the shape of value"):
            raise ValueError(f"index_add: expected a value of shape {list(expected)}, for {describe(x)} and "
                             f"{describe(index)} along axis {axis}, got {describe(value)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, value, *, axis=0):
        out = xp.array(x)
        _index_add(xp, out, index, value, axis)
        return out

    def kernel_out(xp, out, x, index, value, *, axis=0):
        if out is not x:
            out[...] = x
        _index_add(xp, out, index, value, axis)

    def vjp_x(g):
        return g

    def vjp_value(g, index, axis):
        return Gather(g, index, axis=axis)


def _index_add(xp: Any, out: Any, index: Any, value: Any, axis: int) -> None:
    at = positions(xp, "index_add", index, out.shape[axis]).reshape(-1)
    value = value.reshape(*value.shape[:axis], at.size, *out.shape[axis + 1:])
    add_at(xp, xp.moveaxis(out, axis, 0), (at,), xp.moveaxis(value, axis, 0))


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

    def infer_meta(x, index, updates):
        expected = gathered_shape("scatter_nd_add", x, index)
        if not shapes_agree(updates.shape, expected, "scatter_nd_add: the shape of updates"):
            raise ValueError(f"scatter_nd_add: expected updates of shape {list(expected)}, for {describe(x)} and an "
                             f"index {describe(index)}, got {describe(updates)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, updates):
        out = xp.array(x)
        _scatter_add(xp, out, index, updates)
        return out

    def kernel_out(xp, out, x, index, updates):
        if out is not x:
            out[...] = x
        _scatter_add(xp, out, index, updates)

    def vjp_x(g):
        return g

    def vjp_updates(g, index):
        return GatherNd(g, index)


def _scatter_add(xp: Any, out: Any, index: Any, updates: Any) -> None:
    places = tuple(p.reshape(-1) for p in columns(xp, "scatter_nd_add", index, out.shape))
    add_at(xp, out, places, updates.reshape(places[0].size, *out.shape[len(places):]))


@op("index_put", Trait.EXACT, Trait.INPLACE)
class IndexPut:
    """x with `value`, which broadcasts, written at tuples of numbers.   index: int [..., k]"""

    inplace = {0: 0}

    def infer_meta(x, index, value):
        part = gathered_shape("index_put", x, index)
        if len(shape_of(value)) > len(part) or broadcast_shapes("index_put", part, shape_of(value)) != part:
            raise ValueError(f"index_put: expected a value that broadcasts to the part written, of shape {list(part)}, "
                             f"got shape {list(shape_of(value))}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, value):
        out = xp.array(x)
        out[columns(xp, "index_put", index, x.shape)] = value
        return out

    def kernel_out(xp, out, x, index, value):
        if out is not x:
            out[...] = x
        out[columns(xp, "index_put", index, x.shape)] = value

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


# ------------------------------------------------------------------------------------------- public functions
def an_axis(what: str, axis: Any, x: Tensor) -> int:
    """An axis of x, from the front.  Raises: ValueError for a 0-D tensor too, which has none."""
    if x.ndim == 0:
        raise ValueError(f"{what}: expected a tensor of at least 1 dimension, got {describe(x.payload)}")
    return normalize_axis(what, axis, x.ndim)


def number_list(what: str, index: Any) -> Tensor:
    """An index of one dimension: [n], or [n, 1] as Paddle allows; a 0-D one stays.

    Raises: ValueError for other shapes, TypeError if it is no int tensor.
    """
    if not isinstance(index, Tensor):
        raise TypeError(f"{what}: expected an int tensor as index, got {type(index).__name__}")
    require_index(what, index.payload)
    shape = index.payload.shape
    if len(shape) == 2 and shape[1] == 1:
        return Reshape(index, shape=(shape[0],))
    if len(shape) > 1:
        raise ValueError(f"{what}: expected an index of at most 1 dimension, got {describe(index.payload)}")
    return index


def gather(x: Tensor, index: Tensor, axis: Any = None, name: str | None = None, out: Tensor | None = None) -> Tensor:
    """The slices of x at the numbers `index` along `axis` (None: the first).   index: int [n], or 0-D: one slice.

    Raises: IndexError for a number outside of the dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> gather(to_tensor([[1, 2], [3, 4]]), to_tensor([1, 1, 0]), axis=1).tolist()
    [[2, 2, 1], [4, 4, 3]]
    """
    axis = axis.item() if isinstance(axis, Tensor) else axis
    axis = an_axis("gather", 0 if axis is None else axis, x)
    found = Gather(x, number_list("gather", index), axis=axis)
    return into(out, found)


def index_select(x: Tensor, index: Tensor, axis: int = 0, name: str | None = None, *,
                 out: Tensor | None = None) -> Tensor:
    """The slices of x at the numbers `index` along `axis`.   index: int [n]

    >>> from minipd.ops.creation import to_tensor
    >>> index_select(to_tensor([5, 6, 7]), to_tensor([2, 0])).tolist()
    [7, 5]
    """
    return gather(x, index, axis, out=out)


def take(x: Tensor, index: Tensor, mode: str = "raise", name: str | None = None) -> Tensor:
    """Elements of x by their number in row-major order, in the shape of `index`.

    mode: for numbers that no element has "raise" IndexError, "wrap" around, or "clip" to the first or last; then
    negative numbers count from the end only where they wrap.

    >>> from minipd.ops.creation import arange, to_tensor
    >>> take(arange(6).reshape([2, 3]), to_tensor([[4, -1]])).tolist(), take(arange(6), to_tensor([7]), "wrap").tolist()
    ([[4, 5]], [1])
    """
    require_index("take", index.payload)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"take: expected mode to be raise, wrap or clip, got {mode!r}")
    n = prod(x.payload.shape)
    index = cast(index, dtypes.int64)
    if mode != "raise":
        index = remainder(index, n) if mode == "wrap" else minimum(maximum(index, 0), n - 1)
    return Gather(Reshape(x, shape=(n,)), index, axis=0)


def shard_index(input: Tensor, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Tensor:
    """Numbers below `index_num` as the shard `shard_id` of `nshards` equal ones counts them, `ignore_value` for those
    of others.

    >>> from minipd.ops.creation import to_tensor
    >>> shard_index(to_tensor([[16], [1]]), index_num=20, nshards=2, shard_id=0).tolist()
    [[-1], [1]]
    """
    require_index("shard_index", input.payload)
    if not 0 <= shard_id < nshards:
        raise ValueError(f"shard_index: expected 0 <= shard_id < nshards, got {shard_id} and {nshards}")
    size = -(-index_num // nshards)
    first = shard_id * size
    return where(logical_and(input >= first, input < first + size), input - first, ignore_value)


def gather_nd(x: Tensor, index: Tensor, name: str | None = None) -> Tensor:
    """The slices of x at tuples of numbers, which stand in the last dimension of `index`.

    index: int [..., k] -> [..., dimensions k.. of x].  Raises: IndexError for a number outside of its dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> gather_nd(to_tensor([[1, 2], [3, 4]]), to_tensor([[1, 0], [0, 1]])).tolist()
    [3, 2]
    """
    return GatherNd(x, index)
