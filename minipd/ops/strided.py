"""Other views of a tensor's elements: by strides, in windows, and under another dtype."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import exact_div, is_symbolic, prod, require_at_least
from minipd.framework.layout import row_major
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.by_number import IndexAdd, IndexPut
from minipd.ops.creation import Arange, Full, shape_tuple
from minipd.ops.making import spread
from minipd.ops.reshape import Reshape, Unsqueeze, reshape
from minipd.ops.shapes import normalize_axis

__all__ = ["as_strided", "unfold", "view", "view_as"]


@op("as_strided", Trait.VIEW, Trait.EXACT)
class AsStrided:
    """out[i, j, ...] = the element of x number offset + i * stride[0] + j * stride[1] + ..., in row-major order.

    Elements may come several times; then their gradients add up, and of writes the last one stays.
    """

    def infer_meta(x, *, shape, stride, offset=0):
        if not any(is_symbolic(d) for d in (*shape, *stride, *x.shape)):
            _check_inside(x, shape, stride, offset)
        return Meta(shape, x.dtype)

    def kernel(xp, x, *, shape, stride, offset=0):
        _check_inside(x, shape, stride, offset)     # numpy would read whatever memory is there
        flat = x.reshape(-1)                        # a view where x is contiguous, or has one dimension
        return xp.lib.stride_tricks.as_strided(flat[offset:], shape, tuple(s * flat.strides[0] for s in stride))

    def put_back(base, view, *, shape, stride, offset=0):
        flat = IndexPut(reshape(base, [-1]), Unsqueeze(_numbers(shape, stride, offset), axis=(1,)), reshape(view, [-1]))
        return reshape(flat, base.payload.shape)

    def vjp_x(g, x: Meta, shape, stride, offset):
        zeros = Full(shape=(prod(x.shape),), value=0.0, dtype=g.payload.dtype)
        return reshape(IndexAdd(zeros, _numbers(shape, stride, offset), reshape(g, [-1]), axis=0), x.shape)


def _check_inside(x: Any, shape: tuple, stride: tuple, offset: int) -> None:
    last = offset + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if prod(shape) and last >= prod(x.shape):
        raise ValueError(f"as_strided: expected a part of {describe(x)}, of {prod(x.shape)} elements, got shape "
                         f"{list(shape)} with strides {list(stride)} from {offset}, up to element {last}")


def _numbers(shape: tuple, stride: tuple, offset: int) -> Tensor:
    """The numbers of the elements that such a view has, in its order: int64 [how many]."""
    at: Any = Full(shape=(1,) * len(shape), value=offset, dtype=dtypes.int64.np)
    for i, (n, s) in enumerate(zip(shape, stride, strict=True)):
        steps = Arange(start=0, stop=n, step=1, dtype=dtypes.int64.np) * s
        at = at + Reshape(steps, shape=(n, *(1,) * (len(shape) - i - 1)))
    return Reshape(at, shape=(prod(shape),))


@op("view_dtype", Trait.VIEW, Trait.EXACT)
class ViewDtype:
    """The bytes of x read as another dtype; the last dimension grows or shrinks as the elements do."""

    def infer_meta(x, *, dtype):
        own, other = x.dtype.itemsize, dtype.itemsize
        if own == other:
            return Meta(x.shape, dtype)
        if not x.shape:
            raise ValueError(f"view: expected a tensor of at least 1 dimension to read {describe(x)} as {dtype}")
        last = exact_div(x.shape[-1] * own, other, f"view of {describe(x)} as {dtype}")
        return Meta((*x.shape[:-1], last), dtype)

    def kernel(xp, x, *, dtype):
        return x.view(dtype) if x.dtype.itemsize == dtype.itemsize else xp.ascontiguousarray(x).view(dtype)

    def put_back(base, view, *, dtype):
        return ViewDtype(view, dtype=base.payload.dtype)


# ------------------------------------------------------------------------------------------- public functions
def as_strided(x: Tensor, shape: Any, stride: Any, offset: int = 0, name: str | None = None) -> Tensor:
    """A view of x's elements (in row-major order) in which a step along dimension i goes on by stride[i] elements.

    offset: where it begins, in bytes (as in Paddle).  Where x is no contiguous tensor, it is a view of a contiguous
    copy.

    >>> from minipd.ops.creation import arange
    >>> as_strided(arange(5), [3, 2], [1, 2]).tolist()
    [[0, 2], [1, 3], [2, 4]]
    """
    shape, stride = shape_tuple("as_strided", shape), shape_tuple("as_strided", stride)
    if len(shape) != len(stride):
        raise ValueError(f"as_strided: expected a stride for each dimension, got shape {list(shape)} and strides "
                         f"{list(stride)}")
    first, between = divmod(offset, x.payload.dtype.itemsize)
    if offset < 0 or between:
        raise ValueError(f"as_strided: expected an offset of whole elements of {x.payload.dtype.itemsize} bytes, got "
                         f"{offset}")
    return AsStrided(x, shape=shape, stride=stride, offset=first)


def unfold(x: Tensor, axis: int, size: int, step: int, name: str | None = None) -> Tensor:
    """Windows of `size` elements along `axis`, each beginning `step` elements after the one before: a view, with what
    is in a window in a new last dimension.

    >>> from minipd.ops.creation import arange
    >>> unfold(arange(5), 0, 3, 2).tolist()
    [[0, 1, 2], [2, 3, 4]]
    """
    at = normalize_axis("unfold", axis, x.ndim)
    shape = tuple(x.payload.shape) if x.ndim else (1,)
    if step < 1 or size < 0:
        raise ValueError(f"unfold: expected a step of at least 1 and a size of at least 0, got {step} and {size}")
    require_at_least(shape[at], size, "unfold: the dimension")
    strides = row_major(shape)
    rest = shape[at] - size
    count = rest // step + 1
    return AsStrided(x, shape=(*shape[:at], count, *shape[at + 1:], size),
                     stride=(*strides[:at], strides[at] * step, *strides[at + 1:], strides[at]))


@spread(1)
def view(x: Tensor, shape_or_dtype: Any, name: str | None = None) -> Tensor:
    """x under another shape (see `reshape`), or its bytes read as another dtype.

    Raises: ValueError if the elements, or the bytes of a row, do not divide into it.

    >>> from minipd.ops.creation import ones
    >>> view(ones([2, 6]), [3, 4]).shape, view(ones([2, 6]), "uint8").shape
    (paddle.Size([3, 4]), paddle.Size([2, 24]))
    """
    if isinstance(shape_or_dtype, (list, tuple, int, Tensor)):
        return reshape(x, shape_or_dtype)
    dtype = dtypes.to_np(shape_or_dtype)
    return x if x.payload.dtype == dtype else ViewDtype(x, dtype=dtype)


def view_as(x: Tensor, other: Tensor, name: str | None = None) -> Tensor:
    """x under the shape of `other`."""
    return reshape(x, other.payload.shape)
