"""Looking rows up by number: embedding and take_along_axis.

`start` is a *local* attribute: the global number of the first row that this operand holds.  It is 0 unless the operand
is a shard, when the SPMD rule sets it; an index that another shard owns contributes 0, so that the sum over the shards
is the whole answer (vocabulary parallelism).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand
from minipd.ops.shapes import normalize_axis

__all__ = ["embedding", "take_along_axis"]


def local_rows(xp: Any, index: Any, n: int, start: int) -> tuple[Any, Any]:
    """(row numbers of this shard, which of them it owns); rows that it does not own read row 0."""
    local = index - start
    owned = (local >= 0) & (local < n)
    return xp.where(owned, local, 0), owned


def _check_ids(what: str, ids: Any) -> None:
    if ids.dtype not in dtypes.INTS:
        raise TypeError(f"{what}: expected int indices, got {describe(ids)}")


@op("embedding")
class Embedding:
    """out[..., :] = weight[x[...], :].   x: int [...], weight [rows, width] -> [..., width]"""

    key = 1

    def infer_meta(x, weight, *, start=0):
        _check_ids("embedding", x)
        return Meta((*x.shape, weight.shape[1]), weight.dtype)

    def kernel(xp, x, weight, *, start=0):
        if start == 0 and (not x.size or (x.min() >= 0 and x.max() < weight.shape[0])):
            return weight[x]
        if not weight.shape[0]:
            return xp.zeros((*x.shape, weight.shape[1]), weight.dtype)
        rows, owned = local_rows(xp, x, weight.shape[0], start)
        return xp.where(owned[..., None], weight[rows], weight.dtype.type(0))

    def kernel_out(xp, out, x, weight, *, start=0):
        if not weight.shape[0]:
            out[...] = 0
            return
        rows, owned = local_rows(xp, x, weight.shape[0], start)
        xp.take(weight, rows, axis=0, out=out, mode="clip")
        out[~owned] = 0

    def vjp_weight(g, x, weight: Meta):
        return EmbeddingGrad(x, g, as_operand(weight))


@op("embedding_grad")
class EmbeddingGrad:
    """The rows of g added up where x says: out[x[i], :] += g[i, :], into zeros like `like`."""

    key = 1

    def infer_meta(x, g, like: Meta, *, start=0):
        return Meta(like.shape, g.dtype)

    def kernel(xp, x, g, like, *, start=0):
        out = xp.zeros(like.shape, g.dtype)
        _add_rows(xp, out, x, g, start)
        return out

    def kernel_out(xp, out, x, g, like, *, start=0):
        out[...] = 0
        _add_rows(xp, out, x, g, start)

    def vjp_g(gg, x):
        return Embedding(x, gg)


def _add_rows(xp: Any, out: Any, x: Any, g: Any, start: int) -> None:
    """Sorted by row and summed run by run: as exact as adding one by one, and many times faster than `add.at`."""
    if not x.size or not out.size:
        return
    local = x.reshape(-1) - start
    g = g.reshape(-1, out.shape[1])
    owned = (local >= 0) & (local < out.shape[0])
    local, g = local[owned], g[owned]
    if not local.size:
        return
    order = xp.argsort(local, kind="stable")
    local, g = local[order], g[order]
    first = xp.flatnonzero(xp.concatenate(([True], local[1:] != local[:-1])))
    out[local[first]] = xp.add.reduceat(g, first, axis=0, dtype=g.dtype)


@op("take_along_axis")
class TakeAlongAxis:
    """out[..., i, ...] = x[..., indices[..., i, ...], ...] along `axis`; other dimensions as x's."""

    def infer_meta(x, indices, *, axis, start=0):
        _check_ids("take_along_axis", indices)
        return Meta(indices.shape, x.dtype)

    def kernel(xp, x, indices, *, axis, start=0):
        if not x.shape[axis]:
            return xp.zeros(indices.shape, x.dtype)
        rows, owned = local_rows(xp, indices, x.shape[axis], start)
        return xp.where(owned, xp.take_along_axis(x, rows, axis), x.dtype.type(0))

    def vjp_x(g, indices, x: Meta, axis):
        return TakeAlongAxisGrad(g, indices, as_operand(x), axis=axis)


@op("take_along_axis_grad")
class TakeAlongAxisGrad:
    """g added up where the indices say along `axis`, into zeros like `like`."""

    def infer_meta(g, indices, like: Meta, *, axis, start=0):
        return Meta(like.shape, g.dtype)

    def kernel(xp, g, indices, like, *, axis, start=0):
        out = xp.zeros(like.shape, g.dtype)
        if like.shape[axis]:
            rows, owned = local_rows(xp, indices, like.shape[axis], start)
            where = list(xp.indices(rows.shape, sparse=True))
            where[axis] = rows
            xp.add.at(out, tuple(where), xp.where(owned, g, g.dtype.type(0)))
        return out

    def vjp_g(gg, indices, axis):
        return TakeAlongAxis(gg, indices, axis=axis)


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, sparse: bool = False,
              name: str | None = None) -> Tensor:
    """Rows of `weight` by number.   x: int [...], weight [rows, width] -> [..., width]

    padding_idx: these positions give zeros and no gradient.  sparse: without effect, gradients are dense.
    Raises: ValueError for a number outside 0 .. rows-1.

    >>> from minipd.ops.creation import to_tensor
    >>> embedding(to_tensor([1, 0]), to_tensor([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    rows = weight.payload.shape[0]
    _check_range("embedding", x, rows, f"the rows of {describe(weight.payload)}")
    out = Embedding(x, weight)
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else padding_idx + rows
        out = out * (x != padding).unsqueeze(-1).astype(out.dtype)
    return out


def _check_range(what: str, index: Tensor, n: Any, whose: str) -> None:
    """Numbers that are known now lie in 0 .. n-1.  (A kernel cannot tell: to a shard others' numbers are no error.)"""
    i = index.payload
    if type(i) is not np.ndarray or not i.size or is_symbolic(n):
        return
    low, high = i.min(), i.max()
    if low < 0 or high >= n:
        raise ValueError(f"{what}: expected numbers in 0 .. {n - 1}, {whose}, got {low if low < 0 else high}")


def take_along_axis(arr: Tensor, indices: Tensor, axis: int, broadcast: bool = True) -> Tensor:
    """Elements of arr by number along `axis`; the other dimensions of `indices` are arr's, or 1 (then they stretch).

    >>> from minipd.ops.creation import to_tensor
    >>> take_along_axis(to_tensor([[1.0, 2.0], [3.0, 4.0]]), to_tensor([[1], [0]]), 1).tolist()
    [[2.0], [3.0]]
    """
    axis = normalize_axis("take_along_axis", axis, arr.ndim)
    own, got = arr.payload.shape, indices.payload.shape
    if len(own) != len(got):
        raise ValueError(f"take_along_axis: expected indices of {len(own)} dimensions, as {describe(arr.payload)} has, "
                         f"got {describe(indices.payload)}")
    _check_range("take_along_axis", indices, own[axis], f"along axis {axis} of {describe(arr.payload)}")
    if broadcast:
        want = tuple(g if i == axis else o for i, (o, g) in enumerate(zip(own, got, strict=True)))
        if want != got:
            indices = indices.expand(want)
    return TakeAlongAxis(arr, indices, axis=axis)
