"""Diagonals: read as views, written, and spread out into matrices."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic, prod, same
from minipd.framework.layout import row_major
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.broadcast import as_operand, reduce_to
from minipd.ops.creation import Full, full_like, to_tensor
from minipd.ops.reshape import Reshape, reshape
from minipd.ops.shapes import normalize_axis, shape_of, stretches
from minipd.ops.slicing import SetValue

__all__ = ["diag", "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "fill_diagonal_tensor"]


def diagonal_shape(what: str, x: Any, offset: int, axis1: int, axis2: int) -> tuple:
    """The shape of a diagonal: the other dimensions, then its length."""
    n, m = x.shape[axis1], x.shape[axis2]
    if not is_symbolic(n) and not is_symbolic(m):
        length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    elif same(n, m):
        length = n - abs(offset)
    else:
        raise ValueError(f"{what}: expected matrices of known or equal sizes, got {describe(x)} with axes {axis1} and "
                         f"{axis2}: the length of the diagonal would depend on the sizes")
    return (*(d for i, d in enumerate(x.shape) if i not in (axis1, axis2)), length)


def _view(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    found = x.diagonal(offset, axis1, axis2)
    if x.flags.writeable and not found.flags.writeable:
        found.flags.writeable = True                    # numpy, for historical reasons, gives it read-only
    return found


@op("diagonal", Trait.VIEW, Trait.EXACT)
class Diagonal:
    """The elements x[..., i, ..., i + offset, ...] of dimensions axis1 and axis2, in a new last dimension."""

    def infer_meta(x, *, offset=0, axis1=0, axis2=1):
        return Meta(diagonal_shape("diagonal", x, offset, axis1, axis2), x.dtype)

    def kernel(xp, x, *, offset=0, axis1=0, axis2=1):
        return _view(x, offset, axis1, axis2)

    def put_back(base, view, *, offset=0, axis1=0, axis2=1):
        return FillDiagonalTensor(base, view, offset=offset, dim1=axis1, dim2=axis2)

    def vjp_x(g, x: Meta, offset, axis1, axis2):
        zeros = full_like(as_operand(x), 0.0, g.dtype)
        return FillDiagonalTensor(zeros, g, offset=offset, dim1=axis1, dim2=axis2)


@op("fill_diagonal_tensor", Trait.EXACT, Trait.INPLACE)
class FillDiagonalTensor:
    """x with y, which broadcasts to it, on a diagonal of dimensions dim1 and dim2."""

    inplace = {0: 0}

    def infer_meta(x, y, *, offset=0, dim1=0, dim2=1):
        part = diagonal_shape("fill_diagonal_tensor", x, offset, dim1, dim2)
        if not stretches("fill_diagonal_tensor", shape_of(y), part):
            raise ValueError(f"fill_diagonal_tensor: expected a tensor that broadcasts to the diagonal, of shape "
                             f"{list(part)}, got shape {list(shape_of(y))}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, y, *, offset=0, dim1=0, dim2=1):
        out = xp.array(x)
        _view(out, offset, dim1, dim2)[...] = y
        return out

    def kernel_out(xp, out, x, y, *, offset=0, dim1=0, dim2=1):
        if out is not x:
            out[...] = x
        _view(out, offset, dim1, dim2)[...] = y

    def vjp_x(g, offset, dim1, dim2):
        return FillDiagonalTensor(g, 0.0, offset=offset, dim1=dim1, dim2=dim2)

    def vjp_y(g, y: Meta, offset, dim1, dim2):
        return reduce_to(Diagonal(g, offset=offset, axis1=dim1, axis2=dim2), y)


# ------------------------------------------------------------------------------------------- public functions
def _two_axes(what: str, axis1: int, axis2: int, ndim: int) -> tuple[int, int]:
    if ndim < 2:
        raise ValueError(f"{what}: expected a tensor of at least 2 dimensions, got one of {ndim}")
    a, b = normalize_axis(what, axis1, ndim), normalize_axis(what, axis2, ndim)
    if a == b:
        raise ValueError(f"{what}: expected two different axes, got {axis1} and {axis2} of {ndim} dimensions")
    return a, b


def _offset(offset: int, x: Tensor, axis1: int, axis2: int) -> int:
    """Where the diagonal begins; one that lies outside of the matrix is empty, however far outside."""
    n, m = x.payload.shape[axis1], x.payload.shape[axis2]
    return offset if is_symbolic(n) or is_symbolic(m) else max(-n, min(offset, m))


@whole
def diagonal(x: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Tensor:
    """The diagonals of the matrices in two dimensions, in a new last dimension: a view.

    offset: of the column; > 0 is above the main diagonal, < 0 below.

    >>> from minipd.ops.creation import arange
    >>> diagonal(arange(6).reshape([2, 3]), 1).tolist()
    [1, 5]
    """
    a, b = _two_axes("diagonal", axis1, axis2, x.ndim)
    return Diagonal(x, offset=_offset(offset, x, a, b), axis1=a, axis2=b)


def fill_diagonal_tensor(x: Tensor, y: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1,
                         name: str | None = None) -> Tensor:
    """x with y on the diagonals of the matrices in two dimensions.

    >>> from minipd.ops.creation import ones, zeros
    >>> fill_diagonal_tensor(zeros([2, 3]), ones([2]), 1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    a, b = _two_axes("fill_diagonal_tensor", dim1, dim2, x.ndim)
    return FillDiagonalTensor(x, y.astype(x.dtype), offset=_offset(offset, x, a, b), dim1=a, dim2=b)


def diagonal_scatter(x: Tensor, y: Tensor, offset: int = 0, axis1: int = 0, axis2: int = 1,
                     name: str | None = None) -> Tensor:
    """The same as `fill_diagonal_tensor`."""
    return fill_diagonal_tensor(x, y, offset, axis1, axis2)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last dimension of `input` on a diagonal and 0 elsewhere, in two new dimensions of the result.

    >>> from minipd.ops.creation import to_tensor
    >>> diag_embed(to_tensor([7, 8]), 1).tolist()
    [[0, 7, 0], [0, 0, 8], [0, 0, 0]]
    """
    input = input if isinstance(input, Tensor) else to_tensor(input)
    if input.ndim == 0:
        raise ValueError(f"diag_embed: expected a tensor of at least 1 dimension, got {describe(input.payload)}")
    a, b = _two_axes("diag_embed", dim1, dim2, input.ndim + 1)
    *others, n = input.payload.shape
    rest = iter(others)
    shape = tuple(n + abs(offset) if i in (a, b) else next(rest) for i in range(input.ndim + 1))
    zeros = Full(shape=shape, value=0, dtype=input.payload.dtype)
    return FillDiagonalTensor(zeros, input, offset=offset, dim1=a, dim2=b)


@whole
def diag(x: Tensor, offset: int = 0, padding_value: Any = 0, name: str | None = None) -> Tensor:
    """The diagonal of a matrix; or, of 1 dimension, the matrix with x on its diagonal and `padding_value` elsewhere.

    >>> from minipd.ops.creation import to_tensor
    >>> diag(to_tensor([1, 2]), padding_value=9).tolist(), diag(to_tensor([[1, 2], [3, 4]])).tolist()
    ([[1, 9], [9, 2]], [1, 4])
    """
    if x.ndim == 2:
        return diagonal(x, offset).clone()
    if x.ndim != 1:
        raise ValueError(f"diag: expected a tensor of 1 or 2 dimensions, got {describe(x.payload)}")
    n = x.payload.shape[0] + abs(offset)
    return FillDiagonalTensor(Full(shape=(n, n), value=padding_value, dtype=x.payload.dtype), x, offset=offset)


def diagflat(x: Tensor, offset: int = 0, name: str | None = None) -> Tensor:
    """The matrix with all elements of x on its diagonal."""
    return diag(reshape(x, [-1]), offset)


def fill_diagonal(x: Tensor, value: Any, offset: int = 0, wrap: bool = False, name: str | None = None) -> Tensor:
    """x with a number on its diagonal: of a matrix, or, of more dimensions of one size, where all numbers are equal.

    wrap: in a matrix with more rows than columns, the diagonal begins anew after each row that it leaves free.
    """
    shape = x.payload.shape
    if x.ndim == 2 and not (wrap and offset == 0):
        return FillDiagonalTensor(x, value, offset=_offset(offset, x, 0, 1))
    if x.ndim < 2 or x.ndim > 2 and (offset or any(not same(n, shape[0]) for n in shape)):
        raise ValueError(f"fill_diagonal_: expected a matrix, or equal sizes and offset 0, got {describe(x.payload)} "
                         f"and offset {offset}")
    step = sum(row_major(shape))        # in row-major order, the diagonal is a strided part
    size = prod(shape)
    flat = Reshape(x, shape=(size,))
    return Reshape(SetValue(flat, value, axes=(0,), starts=(0,), ends=(size,), strides=(step,)), shape=shape)

