"""What operators on matrices share.  A matrix is the last two dimensions; those before it count matrices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, require_at_least
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand
from minipd.ops.complex import conj
from minipd.ops.creation import full_like
from minipd.ops.diagonal import diagonal
from minipd.ops.reorder import swapaxes
from minipd.ops.shapes import agree
from minipd.ops.triangle import Tril, Triu

__all__: list[str] = []


def require_matrix(what: str, x: Any, square: bool = False) -> None:
    """Raise unless x holds matrices of floating or complex numbers, square ones if asked.

    Raises: TypeError for another dtype, ValueError for another shape.
    """
    if (x.dtype.np if isinstance(x.dtype, dtypes.DataType) else x.dtype) not in dtypes.INEXACT:
        raise TypeError(f"{what}: expected a floating or complex tensor, got {describe(x)}; cast it first, "
                        "x.astype('float32')")
    if len(x.shape) < 2:
        raise ValueError(f"{what}: expected matrices, a tensor of at least 2 dimensions, got {describe(x)}")
    if square and not agree(x.shape[-2], x.shape[-1], f"{what}: the sides of a square matrix"):
        raise ValueError(f"{what}: expected square matrices, got {describe(x)} of {x.shape[-2]} rows and "
                         f"{x.shape[-1]} columns")


@contextmanager
def explained(what: str, x: Any, why: str) -> Iterator[None]:
    """LAPACK's failure on x as a ValueError that says what was asked of it."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise ValueError(f"{what}: {describe(x)} {why}") from None


def is_wide(what: str, shape: tuple) -> bool:
    """Whether matrices of this shape have fewer rows than columns.  Of symbolic sizes the trace assumes that they have
    not (which is checked when the program runs), unless there are no more than one row."""
    m, n = shape[-2:]
    if not is_symbolic(m) and not is_symbolic(n):
        return m < n
    if not is_symbolic(m) and m < 2:
        return True
    require_at_least(m, n, f"{what}: the rows of a matrix")
    return False


def matrix_transpose(x: Tensor, name: str | None = None) -> Tensor:
    """The transpose of each matrix: the last two dimensions exchanged.

    Raises: ValueError for fewer than 2 dimensions.

    >>> from minipd.ops.creation import ones
    >>> matrix_transpose(ones([4, 2, 3])).shape
    paddle.Size([4, 3, 2])
    """
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected a tensor of at least 2 dimensions, got {describe(x)}")
    return swapaxes(x, -2, -1)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose: of a real matrix, the transpose."""
    return matrix_transpose(conj(x))


def conjugated(rule: Callable) -> Callable:
    """A gradient rule written, as the literature writes them, for the gradients dL/d(re) + i dL/d(im).

    In the library, rules are transposes: their gradients are the conjugates of those (see `autograd.engine`).
    """
    @functools.wraps(rule)
    def transposed(g: Any, *saved: Any) -> Tensor:
        several = isinstance(g, (list, tuple))
        given = [None if v is None else conj(v) for v in g] if several else conj(g)
        return conj(rule(given, *saved))
    return transposed


def identity_like(x: Any) -> Tensor:
    """Matrices of x's shape with ones on the diagonal; x may be a Meta."""
    return Tril(Triu(full_like(as_operand(x), 1.0)))


def off_diagonal_like(x: Any) -> Tensor:
    """Matrices of x's shape with ones everywhere but on the diagonal."""
    return full_like(as_operand(x), 1.0) - identity_like(x)


def diagonal_of(x: Tensor) -> Tensor:
    """The diagonals of matrices: [..., n, n] -> [..., n]."""
    return diagonal(x, axis1=-2, axis2=-1)


def reciprocal_differences(s: Tensor) -> Tensor:
    """1 / (s_j - s_i) at row i and column j, and 0 on the diagonal."""
    gaps = s.unsqueeze(-2) - s.unsqueeze(-1)
    return off_diagonal_like(gaps) / (gaps + identity_like(gaps))


def hermitian_part(x: Tensor) -> Tensor:
    """(x + x^H) / 2."""
    return (x + adjoint(x)) * 0.5
