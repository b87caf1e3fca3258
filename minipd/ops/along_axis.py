"""Writing by number along one axis: out[..., indices[..., i, ...], ...] = values[..., i, ...], or added there, or more.

Writing and adding where the other dimensions agree is a row.  Else numbers along an axis are tuples of numbers, whose
other members count up: then writing is `index_put`, adding is `scatter_nd_add`, and products and extremes are a row.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.broadcast import Expand, ExpandAs
from minipd.ops.by_number import (
    GatherNd,
    IndexPut,
    ScatterNdAdd,
    an_axis,
    gathered_shape,
    places,
    positions,
    require_index,
)
from minipd.ops.cast import cast
from minipd.ops.creation import Arange, Full, ones_like, to_tensor
from minipd.ops.embedding import TakeAlongAxis, take_along_axis
from minipd.ops.joining import Concat
from minipd.ops.logic import equal
from minipd.ops.math import where
from minipd.ops.reshape import Reshape, Unsqueeze
from minipd.ops.shapes import shapes_agree
from minipd.ops.slicing import leading_part

__all__ = ["index_sample", "put_along_axis", "scatter_add", "scatter_reduce"]

#: reduce -> (the array module's function, what changes nothing: a number, or which end of the dtype's range)
UFUNCS: dict[str, tuple[str, Any]] = {"mul": ("multiply", 1), "amin": ("minimum", "max"), "amax": ("maximum", "min")}


@op("put_along_axis", Trait.INPLACE)
class PutAlongAxis:
    """arr with `values` written at the numbers `indices` along `axis` ("assign"; of two writes the last one stays), or
    added there ("add").   indices: int, of arr's sizes but for `axis`; values: of the sizes of indices
    """

    inplace = {0: 0}

    def infer_meta(arr, indices, values, *, axis, reduce="assign"):
        require_index("put_along_axis", indices)
        expected = (*arr.shape[:axis], indices.shape[axis], *arr.shape[axis + 1:])
        for what, x in (("indices", indices), ("values", values)):
            if not shapes_agree(x.shape, expected, f"put_along_axis: the shape of {what}"):
                raise ValueError(f"put_along_axis: expected {what} of shape {list(expected)}, for {describe(arr)} and "
                                 f"axis {axis}, got {describe(x)}")
        return Meta(arr.shape, arr.dtype)

    def kernel(xp, arr, indices, values, *, axis, reduce="assign"):
        out = xp.array(arr)
        _put(xp, out, indices, values, axis, reduce)
        return out

    def kernel_out(xp, out, arr, indices, values, *, axis, reduce="assign"):
        if out is not arr:
            out[...] = arr
        _put(xp, out, indices, values, axis, reduce)

    def vjp_arr(g, indices, axis, reduce):
        if reduce == "add":
            return g
        zeros = Full(shape=tuple(indices.payload.shape), value=0.0, dtype=g.payload.dtype)
        return PutAlongAxis(g, indices, zeros, axis=axis)

    def vjp_values(g, indices, axis, reduce):
        n = g.payload.shape[axis]
        at = where(indices < 0, indices + n, indices)
        part = TakeAlongAxis(g, at, axis=axis)
        if reduce == "add":
            return part
        count = Arange(start=0, stop=at.payload.shape[axis], step=1, dtype=dtypes.int64.np)
        order = ExpandAs(Reshape(count, shape=(at.payload.shape[axis], *(1,) * (g.ndim - axis - 1))), at)
        nobody = Full(shape=tuple(g.payload.shape), value=-1, dtype=dtypes.int64.np)
        written = PutAlongAxis(nobody, at, order, axis=axis)
        return part * cast(equal(TakeAlongAxis(written, at, axis=axis), order), part.dtype)     # others were replaced


def _put(xp: Any, out: Any, indices: Any, values: Any, axis: int, reduce: str) -> None:
    at = list(xp.indices(indices.shape, sparse=True))
    at[axis] = positions(xp, "put_along_axis", indices, out.shape[axis])
    if reduce == "assign":
        out[tuple(at)] = values
    else:
        xp.add.at(out, tuple(at), values)


@op("scatter_nd_reduce", Trait.INPLACE)
class ScatterNdReduce:
    """x with `updates` multiplied into the slices at tuples of numbers ("mul"), or the least or greatest of both there
    ("amin", "amax").   index: int [..., k]; updates: [..., dimensions k.. of x]

    The gradient of a product divides by its factors, which must not be 0; equal extremes share the gradient.
    """

    inplace = {0: 0}

    def infer_meta(x, index, updates, *, reduce, window=None):
        expected = gathered_shape("scatter_nd_reduce", x, index)
        if not shapes_agree(updates.shape, expected, "scatter_nd_reduce: the shape of updates"):
            raise ValueError(f"scatter_nd_reduce: expected updates of shape {list(expected)}, for {describe(x)} and an "
                             f"index {describe(index)}, got {describe(updates)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, index, updates, *, reduce, window=None):
        out = xp.array(x)
        at, part = places(xp, "scatter_nd_reduce", index, updates, x.shape, window)
        getattr(xp, UFUNCS[reduce][0]).at(out, at, part)
        return out

    def kernel_out(xp, out, x, index, updates, *, reduce, window=None):
        if out is not x:
            out[...] = x
        at, part = places(xp, "scatter_nd_reduce", index, updates, x.shape, window)
        getattr(xp, UFUNCS[reduce][0]).at(out, at, part)

    def vjp_x(g, x, index, updates, out, reduce):
        if reduce == "mul":
            return g * out / x
        kept, _, share = _shares(g, x, index, updates, out)
        return share * kept

    def vjp_updates(g, x, index, updates, out, reduce):
        if reduce == "mul":
            return GatherNd(g * out, index) / updates
        _, hits, share = _shares(g, x, index, updates, out)
        return GatherNd(share, index) * hits


def _shares(g: Tensor, x: Tensor, index: Tensor, updates: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(1 where an element of x is the extreme, 1 where one of updates is, the gradient that each of them gets)."""
    kept, hits = cast(equal(x, out), g.dtype), cast(equal(updates, GatherNd(out, index)), g.dtype)
    return kept, hits, g / ScatterNdAdd(kept, index, hits)


def tuples_along(indices: Tensor, axis: int) -> Tensor:
    """The tuples of numbers that numbers along `axis` stand for.   int [...] -> int64 [..., number of dimensions]

    >>> tuples_along(to_tensor([[2, 0]]), 1).tolist()
    [[[0, 2], [0, 0]]]
    """
    parts = []
    for i, n in enumerate(indices.payload.shape):
        part = cast(indices, dtypes.int64)
        if i != axis:
            count = Arange(start=0, stop=n, step=1, dtype=dtypes.int64.np)
            part = ExpandAs(Reshape(count, shape=(n, *(1,) * (indices.ndim - i - 1))), indices)
        parts.append(Unsqueeze(part, axis=(indices.ndim,)))
    return Concat(*parts, axis=indices.ndim)


# ------------------------------------------------------------------------------------------- public functions
@whole
def put_along_axis(arr: Tensor, indices: Tensor, values: Any, axis: int, reduce: str = "assign",
                   include_self: bool = True, broadcast: bool = True) -> Tensor:
    """arr with `values` written at the numbers `indices` along `axis`, or reduced with what is there.

    indices: int, of arr's number of dimensions; the other dimensions are arr's, or 1 (then they stretch), or, if not
    `broadcast`, at most arr's.
    values: a number, or a tensor that broadcasts to the indices (if not `broadcast`: of at least their sizes; what is
    beyond is not used).
    reduce: "assign", "add", "mul" (or "multiply"), "mean", "amin", "amax".
    include_self: whether what was there counts.
    Raises: IndexError for a number outside of the axis, ValueError for shapes that do not fit.

    >>> x = to_tensor([[10, 30, 20], [60, 40, 50]])
    >>> put_along_axis(x, to_tensor([[0]]), 99, 0).tolist()
    [[99, 99, 99], [60, 40, 50]]
    >>> put_along_axis(x, to_tensor([[0], [2]]), to_tensor([[1], [2]]), 1, reduce="add").tolist()
    [[11, 30, 20], [60, 40, 52]]
    """
    axis = an_axis("put_along_axis", axis, arr)
    require_index("put_along_axis", indices.payload)
    own, got = arr.payload.shape, indices.payload.shape
    if len(own) != len(got):
        raise ValueError(f"put_along_axis: expected indices of {len(own)} dimensions, as {describe(arr.payload)} has, "
                         f"got {describe(indices.payload)}")
    if not isinstance(values, Tensor):
        values = to_tensor(values, dtype=arr.dtype)
    elif values.payload.dtype != arr.payload.dtype:
        raise TypeError(f"put_along_axis: expected values of dtype {arr.dtype.name}, as {describe(arr.payload)} has, "
                        f"got {describe(values.payload)}; cast one of them")
    if broadcast:
        indices = Expand(indices, shape=tuple(g if i == axis else o for i, (o, g) in enumerate(
            zip(own, got, strict=True))))
    elif values.ndim:
        values = leading_part("put_along_axis", values, indices)
    values = Expand(values, shape=tuple(indices.payload.shape))
    if (reduce == "assign" or reduce == "add" and include_self) and all(
            i == axis or same(o, g) for i, (o, g) in enumerate(zip(own, indices.payload.shape, strict=True))):
        return PutAlongAxis(arr, indices, values, axis=axis, reduce=reduce)
    return reduced_at(arr, tuples_along(indices, axis), values, reduce, include_self)


def reduced_at(x: Tensor, index: Tensor, updates: Tensor, reduce: str, include_self: bool) -> Tensor:
    """x with `updates` at tuples of numbers, by any of the reductions of `put_along_axis`."""
    if reduce == "assign":
        return IndexPut(x, index, updates)
    if reduce in ("add", "mean"):
        total = ScatterNdAdd(x if include_self else IndexPut(x, index, 0), index, updates)
        if reduce == "add":
            return total
        ones = ones_like(x) if include_self else IndexPut(ones_like(x), index, 0)
        count = ScatterNdAdd(ones, index, ones_like(updates))
        return cast(total // count if x.payload.dtype in dtypes.INTS else total / count, x.dtype)
    reduce = {"multiply": "mul", "prod": "mul"}.get(reduce, reduce)
    if reduce not in UFUNCS:
        raise ValueError("put_along_axis: expected reduce to be assign, add, mul, multiply, mean, amin or amax, got "
                         f"{reduce!r}")
    if not include_self:
        x = IndexPut(x, index, _neutral(reduce, x.payload.dtype))
    return ScatterNdReduce(x, index, updates, reduce=reduce)


def _neutral(reduce: str, dtype: Any) -> Any:
    """The number that a reduction with anything leaves as it is."""
    number = UFUNCS[reduce][1]
    if isinstance(number, int):
        return number
    if dtype in dtypes.FLOATS:
        return float("inf" if number == "max" else "-inf")
    return number == "max" if dtype.kind == "b" else getattr(dtypes.iinfo(dtype), number)


def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """input with the elements of `src` added at the numbers `index` along `dim`.

    index: int, of at most the sizes of src, and, but for `dim`, of input.

    >>> from minipd.ops.creation import zeros
    >>> scatter_add(zeros([1, 3]), 1, to_tensor([[0, 2, 2]]), to_tensor([[1.0, 2.0, 3.0]])).tolist()
    [[1.0, 0.0, 5.0]]
    """
    return put_along_axis(input, index, src, dim, "add", broadcast=False)


def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
                   include_self: bool = True) -> Tensor:
    """input with the elements of `src` reduced into it at the numbers `index` along `dim`.

    reduce: "sum", "prod", "mean", "amin", "amax".  index: as for `scatter_add`.

    >>> from minipd.ops.creation import zeros
    >>> scatter_reduce(zeros([3]), 0, to_tensor([0, 2, 2]), to_tensor([1.0, 2.0, 3.0]), "amax").tolist()
    [1.0, 0.0, 3.0]
    """
    if reduce not in ("sum", "prod", "mean", "amin", "amax"):
        raise ValueError(f"scatter_reduce: expected reduce to be sum, prod, mean, amin or amax, got {reduce!r}")
    return put_along_axis(input, index, src, dim, "add" if reduce == "sum" else reduce, include_self, broadcast=False)


def index_sample(x: Tensor, index: Tensor) -> Tensor:
    """Elements of each row by number.   x [n, width], index: int [n, k] -> [n, k]

    >>> index_sample(to_tensor([[1, 2, 3], [4, 5, 6]]), to_tensor([[2, 2], [0, 1]])).tolist()
    [[3, 3], [4, 5]]
    """
    if x.ndim != 2 or index.ndim != 2:
        raise ValueError(f"index_sample: expected tensors of 2 dimensions, got {describe(x.payload)} and "
                         f"{describe(index.payload)}")
    return take_along_axis(x, index, 1)
