"""Inverses, determinants, and linear equations of square matrices."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import reduce_to
from minipd.ops.joining import stack
from minipd.ops.making import into
from minipd.ops.matrices.parts import explained, matrix_transpose, require_matrix
from minipd.ops.promotion import promoted
from minipd.ops.shapes import agree, broadcast_shapes, common_dtype
from minipd.ops.triangle import Tril, Triu

__all__ = ["det", "inv", "inverse", "slogdet", "solve", "triangular_solve"]

SINGULAR = "holds a singular matrix, which has no inverse; for the best there is use paddle.linalg.pinv"


@op("inverse", Trait.ALLOCATES)
class Inverse:
    """The inverse of each square matrix."""

    def infer_meta(x):
        require_matrix("inverse", x, square=True)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x):
        with explained("inverse", x, SINGULAR):
            return xp.linalg.inv(x)

    def vjp_x(g, out):                  # d(A^-1) = -A^-1 dA A^-1
        return -(matrix_transpose(out) @ g @ matrix_transpose(out))


@op("determinant", Trait.ALLOCATES)
class Determinant:
    """The determinant of each square matrix."""

    def infer_meta(x):
        require_matrix("det", x, square=True)
        return Meta(x.shape[:-2], x.dtype)

    def kernel(xp, x):
        return xp.linalg.det(x)

    def vjp_x(g, x, out):               # d det A = det A tr(A^-1 dA)
        return (g * out).unsqueeze([-1, -1]) * matrix_transpose(Inverse(x))


@op("slogdet", Trait.MULTI, Trait.ALLOCATES)
class Slogdet:
    """Sign and logarithm of the absolute value of each determinant, which itself may be too large or small to hold."""

    outputs = ("sign", "log")

    def infer_meta(x):
        require_matrix("slogdet", x, square=True)
        return Meta(x.shape[:-2], x.dtype), Meta(x.shape[:-2], dtypes.real_of(x.dtype))

    def kernel(xp, x):
        return tuple(map(xp.asarray, xp.linalg.slogdet(x)))

    def vjp_x(gs, x):                   # the sign of a real determinant is flat; d ln |det A| = tr(A^-1 dA)
        g = gs[0] * 0.0 if gs[1] is None else gs[1]
        return g.unsqueeze([-1, -1]) * matrix_transpose(Inverse(x))


@op("solve", Trait.ALLOCATES)
class Solve:
    """The X of x X = y.   x: [..., n, n]; y: [..., n, k]; dimensions before the matrices broadcast."""

    def infer_meta(x, y):
        return _equations("solve", x, y)

    def kernel(xp, x, y):
        with explained("solve", x, SINGULAR):
            return xp.linalg.solve(x, y)

    def vjp_x(g, x, out):
        return reduce_to(-(Solve(matrix_transpose(x), g) @ matrix_transpose(out)), x)

    def vjp_y(g, x, y: Meta):
        return reduce_to(Solve(matrix_transpose(x), g), y)


@op("triangular_solve", Trait.ALLOCATES)
class TriangularSolve:
    """The X of x X = y (or of x^T X = y, if transpose), where only the upper (or lower) triangle of x is read.

    unitriangular: the diagonal counts as ones.
    """

    def infer_meta(x, y, *, upper=True, transpose=False, unitriangular=False):
        return _equations("triangular_solve", x, y)

    def kernel(xp, x, y, *, upper=True, transpose=False, unitriangular=False):
        a = xp.triu(x) if upper else xp.tril(x)
        n = a.shape[-1]
        if unitriangular:
            a[..., range(n), range(n)] = 1
        if transpose:
            a, upper = a.swapaxes(-1, -2), not upper
        # An upper triangular matrix is its own LU factor: solving finds nothing to pivot or eliminate, only to
        # substitute.  A lower one becomes so with both its axes reversed.
        with explained("triangular_solve", x, "has a zero on its diagonal: the matrix is singular"):
            if upper:
                return xp.linalg.solve(a, y)
            return xp.ascontiguousarray(xp.linalg.solve(a[..., ::-1, ::-1], y[..., ::-1, :])[..., ::-1, :])

    def vjp_x(g, x, out, upper, transpose, unitriangular):
        gy = TriangularSolve(x, g, upper=upper, transpose=not transpose, unitriangular=unitriangular)
        gx = -(out @ matrix_transpose(gy) if transpose else gy @ matrix_transpose(out))
        part = Triu(gx, diagonal=int(unitriangular)) if upper else Tril(gx, diagonal=-int(unitriangular))
        return reduce_to(part, x)

    def vjp_y(g, x, y: Meta, upper, transpose, unitriangular):
        gy = TriangularSolve(x, g, upper=upper, transpose=not transpose, unitriangular=unitriangular)
        return reduce_to(gy, y)


def _equations(what: str, x: Any, y: Any) -> Meta:
    require_matrix(what, x, square=True)
    require_matrix(what, y)
    if not agree(y.shape[-2], x.shape[-1], f"{what}: the rows of the right-hand side"):
        raise ValueError(f"{what}: expected a right-hand side of {x.shape[-1]} rows for {describe(x)}, got "
                         f"{describe(y)}")
    return Meta((*broadcast_shapes(what, x.shape[:-2], y.shape[:-2]), *y.shape[-2:]), common_dtype(what, x, y))


# ------------------------------------------------------------------------------------------- public functions
def inverse(x: Tensor, name: str | None = None) -> Tensor:
    """The inverse of each square matrix.

    x: [..., n, n], floating or complex.
    Raises: ValueError for matrices that are not square, or singular.

    >>> from minipd.ops.creation import to_tensor
    >>> inverse(to_tensor([[2.0, 0.0], [0.0, 4.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    require_matrix("inverse", x, square=True)
    return Inverse(x)


def inv(x: Tensor, name: str | None = None) -> Tensor:
    """The same as `inverse`."""
    return inverse(x)


def det(x: Tensor, name: str | None = None) -> Tensor:
    """The determinant of each square matrix: [..., n, n] -> [...].

    Its gradient is that of an invertible matrix: ValueError for a singular one.

    >>> from minipd.ops.creation import to_tensor
    >>> round(det(to_tensor([[1.0, 2.0], [3.0, 4.0]])).item(), 4)
    -2.0
    """
    require_matrix("det", x, square=True)
    return Determinant(x)


def slogdet(x: Tensor, name: str | None = None) -> Tensor:
    """Sign and ln |determinant| of each square matrix, stacked: [..., n, n] -> [2, ...].  A singular one has sign 0 and
    logarithm -inf.

    >>> from minipd.ops.creation import to_tensor
    >>> slogdet(to_tensor([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [-1.0, 0.0]
    """
    require_matrix("slogdet", x, square=True)
    return stack(list(Slogdet(x)))


def solve(x: Tensor, y: Tensor, left: bool = True, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The X of x X = y; with left=False, of X x = y.

    x: [..., n, n].  y: [..., n, k] ([..., k, n] from the right), or [..., n], one vector for each matrix of x or for
    all.  Dimensions before those broadcast.
    Raises: ValueError if the sizes do not fit, or for a singular matrix.

    >>> from minipd.ops.creation import to_tensor
    >>> solve(to_tensor([[2.0, 0.0], [0.0, 4.0]]), to_tensor([2.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    require_matrix("solve", x, square=True)
    x, y = promoted("solve", x, y)
    vector = y.ndim == 1 or y.ndim == x.ndim - 1 and tuple(y.payload.shape) == tuple(x.payload.shape[:-1])
    if vector:
        y = y.unsqueeze(-1 if left else -2)
    result = Solve(x, y) if left else matrix_transpose(Solve(matrix_transpose(x), matrix_transpose(y)))
    if vector:
        result = result.squeeze(-1 if left else -2)
    return into(out, result)


def triangular_solve(x: Tensor, y: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False,
                     name: str | None = None) -> Tensor:
    """The X of x X = y, where only one triangle of x is read.

    x: [..., n, n].  y: [..., n, k].  upper: which triangle.  transpose: solve x^T X = y.  unitriangular: ones on the
    diagonal, whatever is there.
    Raises: ValueError if the sizes do not fit, or for a zero on the diagonal.

    >>> from minipd.ops.creation import to_tensor
    >>> triangular_solve(to_tensor([[1.0, 1.0], [0.0, 2.0]]), to_tensor([[3.0], [4.0]])).tolist()
    [[1.0], [2.0]]
    """
    require_matrix("triangular_solve", x, square=True)
    x, y = promoted("triangular_solve", x, y)
    return TriangularSolve(x, y, upper=bool(upper), transpose=bool(transpose), unitriangular=bool(unitriangular))
