"""Cholesky factors of positive definite matrices, and what follows from one."""

from __future__ import annotations

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.complex import conj
from minipd.ops.matrices.equations import TriangularSolve
from minipd.ops.matrices.parts import (
    adjoint,
    conjugated,
    explained,
    hermitian_part,
    identity_like,
    require_matrix,
)
from minipd.ops.promotion import promoted
from minipd.ops.triangle import Tril

__all__ = ["cholesky", "cholesky_inverse", "cholesky_solve"]


@op("cholesky", Trait.ALLOCATES)
class Cholesky:
    """The lower triangular L of x = L L^H (or, upper, the U of x = U^H U), for each positive definite matrix x.

    Only one triangle of x is read; the gradient is the symmetric one, that of a symmetric matrix.
    """

    def infer_meta(x, *, upper=False):
        require_matrix("cholesky", x, square=True)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, upper=False):
        with explained("cholesky", x, "is not positive definite (symmetric, with all eigenvalues above 0)"):
            low = xp.linalg.cholesky(x.swapaxes(-1, -2).conj() if upper else x)
            return xp.ascontiguousarray(low.swapaxes(-1, -2).conj()) if upper else low

    @conjugated
    def vjp_x(g, out, upper):           # L^-H phi(L^H g) L^-1; phi: the lower triangle, with half of the diagonal
        low, g = (adjoint(out), adjoint(g)) if upper else (out, g)
        product = Tril(adjoint(low) @ g)
        phi = product - product * identity_like(product) * 0.5
        left = _solve_adjoint(low, phi)
        return hermitian_part(adjoint(_solve_adjoint(low, adjoint(left))))


def _solve_adjoint(low: Tensor, y: Tensor) -> Tensor:
    """L^-H y, for a lower triangular L."""
    return TriangularSolve(conj(low), y, upper=False, transpose=True)


def cholesky(x: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The Cholesky factor of each positive definite matrix: lower triangular L with x = L L^H, or upper U, x = U^H U.

    x: [..., n, n].
    Raises: ValueError for a matrix that is not positive definite.

    >>> from minipd.ops.creation import to_tensor
    >>> cholesky(to_tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    require_matrix("cholesky", x, square=True)
    return Cholesky(x, upper=bool(upper))


def cholesky_solve(x: Tensor, y: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The X of A X = x, where y is the Cholesky factor of A (lower, or upper).

    x: [..., n, k].  y: [..., n, n].

    >>> from minipd.ops.creation import to_tensor
    >>> cholesky_solve(to_tensor([[4.0], [8.0]]), to_tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[1.0], [8.0]]
    """
    require_matrix("cholesky_solve", y, square=True)
    x, y = promoted("cholesky_solve", x, y)
    if upper:                           # U = L^H
        return TriangularSolve(y, TriangularSolve(conj(y), x, upper=True, transpose=True), upper=True)
    return _solve_adjoint(y, TriangularSolve(y, x, upper=False))


def cholesky_inverse(x: Tensor, upper: bool = False, name: str | None = None) -> Tensor:
    """The inverse of the matrix whose Cholesky factor (lower, or upper) is x.

    x: [n, n].

    >>> from minipd.ops.creation import to_tensor
    >>> cholesky_inverse(to_tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    require_matrix("cholesky_inverse", x, square=True)
    return cholesky_solve(identity_like(x), x, upper)
