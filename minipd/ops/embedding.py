"""Looking rows up by number: embedding and take_along_axis.

`window` is a *local* attribute, which only the SPMD rules set: (how many rows the whole table has, the first that this
operand holds), None where the operand is the whole.  A number that another shard has contributes 0, so that the sum
over the shards is the whole answer (vocabulary parallelism); a number that nobody has is an error, on a shard too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.accumulate import add_at
from minipd.ops.broadcast import as_operand
from minipd.ops.cast import cast
from minipd.ops.making import into
from minipd.ops.shapes import normalize_axis
from minipd.ops.slicing import leading_part

__all__ = ["embedding", "take_along_axis", "take_along_dim"]


def local_rows(xp: Any, index: Any, table: Any, axis: int, window: Any, what: str, whose: str) -> tuple[Any, Any]:
    """(positions along `axis` of `table`, which of them it has): those that other shards have become 0.  None: all.

    Raises: ValueError for a number outside of the whole table; `what` and `whose` say what was looked up in what.
    """
    n = table.shape[axis]
    total, first = (n, 0) if window is None else window
    if index.size:
        low, high = index.min(), index.max()
        if low < 0 or high >= total:
            shard = "" if window is None else "the whole of which this rank has "
            raise ValueError(f"{what} in 0 .. {total - 1}, {whose} {shard}{describe(table)}, "
                             f"got {low if low < 0 else high}")
    return (index, None) if window is None else owned_rows(xp, index, n, first)


def owned_rows(xp: Any, index: Any, n: int, first: int) -> tuple[Any, Any]:
    """(positions here, which of them are here) for a shard that has the `n` rows of a table from row `first` on.

    index: int [...], row numbers in the whole table.  Those of other shards get position 0, and False.

    >>> import numpy as np
    >>> owned_rows(np, np.array([0, 3, 2, 3]), n=2, first=2)
    (array([0, 1, 0, 1]), array([False,  True,  True,  True]))
    """
    local = index.astype(xp.int64) - first          # small int types do not hold every difference
    owned = (local >= 0) & (local < n)
    return xp.where(owned, local, 0), owned


def _check_ids(what: str, ids: Any) -> None:
    if ids.dtype not in dtypes.INTS:
        raise TypeError(f"{what}: expected int indices, got {describe(ids)}")


def _rows_of(xp: Any, x: Any, weight: Any, window: Any) -> tuple[Any, Any]:
    return local_rows(xp, x, weight, 0, window, "embedding: expected numbers", "the rows of")


def _places_in(xp: Any, indices: Any, table: Any, axis: int, window: Any) -> tuple[Any, Any]:
    return local_rows(xp, indices, table, axis, window, "take_along_axis: expected numbers", f"along axis {axis} of")


@op("embedding")
class Embedding:
    """out[..., :] = weight[x[...], :].   x: int [...], weight [rows, width] -> [..., width]"""

    key = 1

    def infer_meta(x, weight, *, window=None):
        _check_ids("embedding", x)
        return Meta((*x.shape, weight.shape[1]), weight.dtype)

    def kernel(xp, x, weight, *, window=None):
        rows, owned = _rows_of(xp, x, weight, window)
        if owned is None:
            return weight[rows]
        if not weight.shape[0]:
            return xp.zeros((*x.shape, weight.shape[1]), weight.dtype)
        return xp.where(owned[..., None], weight[rows], weight.dtype.type(0))

    def kernel_out(xp, out, x, weight, *, window=None):
        rows, owned = _rows_of(xp, x, weight, window)
        if weight.shape[0]:
            xp.take(weight, rows, axis=0, out=out, mode="clip")
        if owned is not None:
            out[~owned] = 0

    def vjp_weight(g, x, weight: Meta):
        return EmbeddingGrad(x, g, as_operand(weight))


@op("embedding_grad")
class EmbeddingGrad:
    """The rows of g added up where x says: out[x[i], :] += g[i, :], into zeros like `like`."""

    key = 1

    def infer_meta(x, g, like: Meta, *, window=None):
        return Meta(like.shape, g.dtype)

    def kernel(xp, x, g, like, *, window=None):
        out = xp.zeros(like.shape, g.dtype)
        _add_rows(xp, out, x, g, window)
        return out

    def kernel_out(xp, out, x, g, like, *, window=None):
        out[...] = 0
        _add_rows(xp, out, x, g, window)

    def vjp_g(gg, x):
        return Embedding(x, gg)


def _add_rows(xp: Any, out: Any, x: Any, g: Any, window: Any) -> None:
    rows, owned = _rows_of(xp, x, out, window)
    if not x.size or not out.size:
        return
    rows, g = rows.reshape(-1), g.reshape(-1, out.shape[1])
    if owned is not None:
        owned = owned.reshape(-1)
        rows, g = rows[owned], g[owned]
    add_at(xp, out, (rows,), g)


@op("take_along_axis", Trait.ALLOCATES)
class TakeAlongAxis:
    """out[..., i, ...] = x[..., indices[..., i, ...], ...] along `axis`; other dimensions as x's."""

    def infer_meta(x, indices, *, axis, window=None):
        _check_ids("take_along_axis", indices)
        return Meta(indices.shape, x.dtype)

    def kernel(xp, x, indices, *, axis, window=None):
        rows, owned = _places_in(xp, indices, x, axis, window)
        if owned is None:
            return xp.take_along_axis(x, rows, axis)
        if not x.shape[axis]:
            return xp.zeros(indices.shape, x.dtype)
        return xp.where(owned, xp.take_along_axis(x, rows, axis), x.dtype.type(0))

    def vjp_x(g, indices, x: Meta, axis):
        return TakeAlongAxisGrad(g, indices, as_operand(x), axis=axis)


@op("take_along_axis_grad")
class TakeAlongAxisGrad:
    """g added up where the indices say along `axis`, into zeros like `like`."""

    def infer_meta(g, indices, like: Meta, *, axis, window=None):
        return Meta(like.shape, g.dtype)

    def kernel(xp, g, indices, like, *, axis, window=None):
        out = xp.empty(like.shape, g.dtype)
        _put_along_axis(xp, out, g, indices, axis, window)
        return out

    def kernel_out(xp, out, g, indices, like, *, axis, window=None):
        _put_along_axis(xp, out, g, indices, axis, window)

    def vjp_g(gg, indices, axis):
        return TakeAlongAxis(gg, indices, axis=axis)


def _put_along_axis(xp: Any, out: Any, g: Any, indices: Any, axis: int, window: Any) -> None:
    """`out` lies in row-major order."""
    out[...] = 0
    rows, owned = _places_in(xp, indices, out, axis, window)
    if out.shape[axis]:
        where = list(xp.indices(rows.shape, sparse=True))
        where[axis] = rows
        # by one number for each element: adding at tuples of numbers takes four times as long
        flat = sum(at * prod(out.shape[i + 1:]) for i, at in enumerate(where))
        shares = g if owned is None else xp.where(owned, g, g.dtype.type(0))
        xp.add.at(out.reshape(-1), xp.broadcast_to(flat, g.shape).reshape(-1), shares.reshape(-1))


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, sparse: bool = False,
              name: str | None = None) -> Tensor:
    """Rows of `weight` by number.   x: int [...], weight [rows, width] -> [..., width]

    padding_idx: these positions give zeros and no gradient.  sparse: without effect, gradients are dense.
    Raises: ValueError for a number outside 0 .. rows-1.

    >>> from minipd.ops.creation import to_tensor
    >>> embedding(to_tensor([1, 0]), to_tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    out = Embedding(x, weight)
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else padding_idx + weight.payload.shape[0]
        out = out * (x != padding).unsqueeze(-1).astype(out.dtype)
    return out


@whole
def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True, *,
                    out: Tensor | None = None) -> Tensor:
    """Elements of arr by number along `axis`; the other dimensions of `indices` are arr's, or 1 (then they stretch),
    or, if not `broadcast`, at most arr's.  Negative numbers count from the end.

    Raises: ValueError for a number outside of the axis.

    >>> from minipd.ops.creation import to_tensor
    >>> take_along_axis(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([[1], [0]]), 1).tolist()
    [[2.0], [3.0]]
    """
    axis = normalize_axis("take_along_axis", axis, arr.ndim)
    _check_ids("take_along_axis", indices.payload)
    own, got = arr.payload.shape, indices.payload.shape
    if len(own) != len(got):
        raise ValueError(f"take_along_axis: expected indices of {len(own)} dimensions, as {describe(arr.payload)} has, "
                         f"got {describe(indices.payload)}")
    if broadcast:
        want = tuple(g if i == axis else o for i, (o, g) in enumerate(zip(own, got, strict=True)))
        if want != got:
            indices = indices.expand(want)
    else:
        arr = leading_part("take_along_axis", arr, indices, but=axis)
    return into(out, TakeAlongAxis(arr, _from_the_front(indices, arr, axis), axis=axis))


take_along_dim = take_along_axis


def _from_the_front(indices: Tensor, arr: Tensor, axis: int) -> Tensor:
    """The numbers along an axis of arr, negative ones counted from the front."""
    p, n = indices.payload, arr.payload.shape[axis]
    if isinstance(p, np.ndarray):
        low = p.min(initial=0)
        if low == 0:
            return indices
        if low < -n:
            raise ValueError(f"take_along_axis: expected numbers in {-n} .. {n - 1}, along axis {axis} of "
                             f"{describe(arr.payload)}, got {low}")
    wide = cast(indices, dtypes.int64)
    return wide + cast(wide < 0, dtypes.int64) * n
