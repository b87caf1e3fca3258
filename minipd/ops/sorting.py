"""Rows that order the elements along an axis, and choose some: each returns values and where they stood.

The value's gradient goes back to where it stood, so one rule serves all of them.  NaN counts as greater than every
number.  Equal elements stay in their order; where Paddle leaves open which of them comes first, it is the first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.framework import dtype as dtypes
from minipd.framework.dim import require_at_least
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand
from minipd.ops.embedding import TakeAlongAxisGrad
from minipd.ops.making import into
from minipd.ops.reshape import Squeeze
from minipd.ops.shapes import normalize_axis

__all__ = ["argsort", "kthvalue", "mode", "msort", "sort", "topk"]

INT64 = dtypes.int64.np


def order_of(xp: Any, x: Any, axis: int, descending: bool = False) -> Any:
    """The numbers of the elements along `axis`, in the order of their values; equal ones stay in their order."""
    if x.dtype == dtypes.bfloat16.np:
        x = x.astype(xp.float32)
    if not descending:
        return xp.argsort(x, axis=axis, kind="stable")
    reverse = (slice(None),) * axis + (slice(None, None, -1),)
    return x.shape[axis] - 1 - xp.argsort(x[reverse], axis=axis, kind="stable")[reverse]


def first_of(xp: Any, x: Any, k: int, axis: int, descending: bool = False) -> Any:
    """The first k numbers of `order_of`, without ordering the rest: those before the k-th value, and as many of its
    equals as there is room for."""
    n, along = x.shape[axis], (slice(None),) * axis
    if n < 64 or 4 * k > n or (x != x).any():           # noqa: PLR0124  (NaN, which differs from itself, has no place)
        return order_of(xp, x, axis, descending)[(*along, slice(k))]
    if x.dtype == dtypes.bfloat16.np:
        x = x.astype(xp.float32)
    at = n - k if descending else k - 1
    bound = xp.partition(x, at, axis)[(*along, slice(at, at + 1))]
    before, equal = (x > bound if descending else x < bound), x == bound
    room = k - before.sum(axis=axis, keepdims=True)
    kept = xp.moveaxis(before | equal & (xp.cumsum(equal, axis=axis) <= room), axis, -1)
    numbers = xp.moveaxis(xp.nonzero(kept)[-1].reshape(*kept.shape[:-1], k), -1, axis)
    order = order_of(xp, xp.take_along_axis(x, numbers, axis), axis, descending)
    return xp.take_along_axis(numbers, order, axis)


class Chosen:
    """Elements along an axis, and their numbers there: out = x[..., indices, ...]."""

    traits = (Trait.MULTI, Trait.EXACT, Trait.ALLOCATES)
    outputs = ("out", "indices")

    def vjp_x(gs: Any, x: Meta, indices, axis):
        return TakeAlongAxisGrad(gs[0], indices, as_operand(x), axis=axis)


def _chosen(xp: Any, x: Any, indices: Any, axis: int) -> tuple[Any, Any]:
    return xp.take_along_axis(x, indices, axis), indices


def _metas(what: str, x: Any, axis: int, size: Any, least: Any = 1) -> tuple[Meta, Meta]:
    require_at_least(size, least, f"{what}: how many to choose")
    require_at_least(x.shape[axis], size, f"{what}: the size of axis {axis}")
    shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
    return Meta(shape, x.dtype), Meta(shape, INT64)


@op("argsort")
class Argsort(Chosen):
    """All elements along `axis`, in order."""

    def infer_meta(x, *, axis, descending=False):
        return Meta(x.shape, x.dtype), Meta(x.shape, INT64)

    def kernel(xp, x, *, axis, descending=False):
        return _chosen(xp, x, order_of(xp, x, axis, descending), axis)


@op("topk")
class TopK(Chosen):
    """The k greatest (or least) elements along `axis`, in order."""

    def infer_meta(x, *, k, axis, largest=True):
        return _metas("topk", x, axis, k)

    def kernel(xp, x, *, k, axis, largest=True):
        return _chosen(xp, x, first_of(xp, x, k, axis, largest), axis)


@op("kthvalue")
class KthValue(Chosen):
    """The k-th least element along `axis`, which stays with size 1.   k counts from 1"""

    def infer_meta(x, *, k, axis):
        require_at_least(x.shape[axis], k, f"kthvalue: the size of axis {axis}")
        return _metas("kthvalue", x, axis, 1)

    def kernel(xp, x, *, k, axis):
        return _chosen(xp, x, first_of(xp, x, k, axis)[(slice(None),) * axis + (slice(k - 1, k),)], axis)


@op("mode")
class Mode(Chosen):
    """The most frequent element along `axis`, which stays with size 1: of several the least, where it stands last."""

    def infer_meta(x, *, axis):
        return _metas("mode", x, axis, 1)

    def kernel(xp, x, *, axis):
        order = order_of(xp, x, axis)
        rows = xp.moveaxis(xp.take_along_axis(x, order, axis), axis, -1)
        lead, n = rows.shape[:-1], rows.shape[-1]
        rows = rows.reshape(-1, n)
        run = xp.zeros(rows.shape, xp.int64)                        # the number of each element's run of equal ones
        xp.cumsum(rows[:, 1:] != rows[:, :-1], axis=1, out=run[:, 1:])
        lengths = xp.bincount((run + n * xp.arange(len(rows))[:, None]).reshape(-1), minlength=run.size)
        longest = lengths.reshape(run.shape).argmax(axis=1)
        last = (run <= longest[:, None]).sum(axis=1) - 1
        indices = xp.take_along_axis(order, xp.moveaxis(last.reshape(*lead, 1), -1, axis), axis)
        return _chosen(xp, x, indices, axis)


# ------------------------------------------------------------------------------------------- public functions
class TopKRetType(NamedTuple):
    """What `topk` returns."""

    values: Tensor
    indices: Tensor


def _along(row: Any, x: Tensor, axis: Any, keepdim: bool = True, **attrs: Any) -> tuple[Tensor, Tensor]:
    """A row along an axis; a 0-D tensor counts as one of one element."""
    _check_ordered(row.name, x)
    at = normalize_axis(row.name, axis, x.ndim)
    out, indices = row(x if x.ndim else x.reshape([1]), axis=at, **attrs)
    if x.ndim and keepdim:
        return out, indices
    return Squeeze(out, axis=(at,)), Squeeze(indices, axis=(at,))


def _check_count(what: str, x: Tensor, k: Any, axis: int | None) -> None:
    """Raise ValueError unless 1 <= k <= the size of the axis."""
    n = x.payload.shape[normalize_axis(what, -1 if axis is None else axis, x.ndim)] if x.ndim else 1
    require_at_least(k, 1, f"{what}: k")
    require_at_least(n, k, f"{what}: the size, of {describe(x.payload)} along axis {axis}, of which to choose k = {k}")


def _check_ordered(what: str, x: Tensor) -> None:
    if x.payload.dtype.kind == "c":
        raise TypeError(f"{what}: expected a real tensor, got {describe(x.payload)}: complex numbers have no order")


def argsort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = False,
            name: str | None = None) -> Tensor:
    """The numbers of the elements along `axis`, in the order of their values: int64, in the shape of x.

    Equal elements stay in their order, whether or not `stable` asks for it.

    >>> from minipd.ops.creation import to_tensor
    >>> argsort(to_tensor([[5, 8, 5]])).tolist(), argsort(to_tensor([[5, 8, 5]]), descending=True).tolist()
    ([[0, 2, 1]], [[1, 0, 2]])
    """
    return _along(Argsort, x, axis, descending=bool(descending))[1]


def sort(x: Tensor, axis: int = -1, descending: bool = False, stable: bool = False, name: str | None = None) -> Tensor:
    """The elements along `axis` in order.

    >>> from minipd.ops.creation import to_tensor
    >>> sort(to_tensor([[3, 1, 2], [6, 5, 4]])).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    return _along(Argsort, x, axis, descending=bool(descending))[0]


def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements along the first dimension in order."""
    return into(out, sort(input, 0))


def topk(x: Tensor, k: Any, axis: int | None = None, largest: bool = True, sorted: bool = True,
         name: str | None = None, *, out: tuple[Tensor, Tensor] | None = None) -> TopKRetType:
    """The k greatest (or least) elements along `axis` (None: the last), and their numbers there, in order.

    sorted: without effect, they are.  Raises: ValueError unless 1 <= k <= the size of the axis.

    >>> from minipd.ops.creation import to_tensor
    >>> values, indices = topk(to_tensor([1, 4, 5, 7]), 2)
    >>> values.tolist(), indices.tolist()
    ([7, 5], [3, 2])
    """
    k = k.item() if isinstance(k, Tensor) else k
    _check_count("topk", x, k, axis)
    values, indices = _along(TopK, x, -1 if axis is None else axis, k=k, largest=bool(largest))
    return TopKRetType(*(into(o, t) for o, t in zip(out or (None, None), (values, indices), strict=True)))


def kthvalue(x: Tensor, k: int, axis: int | None = None, keepdim: bool = False,
             name: str | None = None) -> tuple[Tensor, Tensor]:
    """The k-th least element along `axis` (None: the last), counted from 1, and its number there.

    >>> from minipd.ops.creation import to_tensor
    >>> [t.tolist() for t in kthvalue(to_tensor([[30, 10, 20], [1, 2, 3]]), 2)]
    [[20, 2], [2, 1]]
    """
    _check_count("kthvalue", x, k, axis)
    return _along(KthValue, x, -1 if axis is None else axis, keepdim, k=k)


def mode(x: Tensor, axis: int = -1, keepdim: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The most frequent element along `axis`, and where it stands last; of several the least.

    >>> from minipd.ops.creation import to_tensor
    >>> [t.tolist() for t in mode(to_tensor([[3, 1, 3, 1, 2], [9, 8, 7, 8, 8]]))]
    [[1, 8], [3, 4]]
    """
    return _along(Mode, x, axis, keepdim)
