"""Eigenvalues and eigenvectors."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import zeros_like
from minipd.ops.diagonal import diag_embed
from minipd.ops.matrices.equations import Solve
from minipd.ops.matrices.parts import (
    adjoint,
    conjugated,
    diagonal_of,
    explained,
    reciprocal_differences,
    require_matrix,
)

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]

NOT_FOUND = "holds NaN or infinity, or is a matrix on which the iteration does not converge"


@op("eigh", Trait.MULTI, Trait.ALLOCATES)
class Eigh:
    """x = v diag(w) v^H for each hermitian matrix x: w ascending, v unitary.

    Only one triangle of x is read, `UPLO`.  The gradient of v exists where eigenvalues differ.
    """

    outputs = ("w", "v")

    def infer_meta(x, *, UPLO="L"):
        require_matrix("eigh", x, square=True)
        return Meta(x.shape[:-1], dtypes.real_of(x.dtype)), Meta(x.shape, x.dtype)

    def kernel(xp, x, *, UPLO="L"):
        with explained("eigh", x, NOT_FOUND):
            return tuple(xp.linalg.eigh(x, UPLO))

    @conjugated
    def vjp_x(gs, w, v):                # dw = diag(v^H dx v); dv = v ((v^H dx v) / (w_j - w_i))
        gw, gv = gs
        gw = zeros_like(w) if gw is None else gw
        inside = diag_embed(cast(gw, v.dtype))
        if gv is not None:
            inside = inside + (adjoint(v) @ gv) * reciprocal_differences(w)
        return v @ inside @ adjoint(v)


@op("eig", Trait.MULTI, Trait.ALLOCATES)
class Eig:
    """x v = v diag(w) for each matrix x; w and v are complex, w in the order in which LAPACK finds them.

    The columns of v have length 1, and the largest component of each is real and positive: LAPACK leaves its sign
    open, and then every build of it answers otherwise.
    The gradient exists where eigenvalues differ, and for results that do not depend on the phases of v.
    """

    outputs = ("w", "v")

    def infer_meta(x):
        require_matrix("eig", x, square=True)
        d = dtypes.complex_of(x.dtype)
        return Meta(x.shape[:-1], d), Meta(x.shape, d)

    def kernel(xp, x):
        with explained("eig", x, NOT_FOUND):
            w, v = xp.linalg.eig(x)
        d = dtypes.complex_of(x.dtype)
        if v.size:
            largest = xp.take_along_axis(v, xp.abs(v).argmax(-2, keepdims=True), -2)
            v = v * (xp.abs(largest) / largest)
        return w.astype(d, copy=False), v.astype(d, copy=False)

    @conjugated
    def vjp_x(gs, x: Meta, w, v):       # as for eigh, but columns of v stay of length 1 instead of orthogonal
        gw, gv = gs
        inside = diag_embed(zeros_like(w) if gw is None else gw)
        if gv is not None:
            vgv = adjoint(v) @ gv
            lengths = cast(diagonal_of(vgv).real(), v.dtype).unsqueeze(-2)
            inside = inside + (vgv - adjoint(v) @ v * lengths) * conj(reciprocal_differences(w))
        gx = Solve(adjoint(v), inside @ adjoint(v))
        return gx if x.dtype in dtypes.COMPLEX else cast(gx.real(), x.dtype)


# ------------------------------------------------------------------------------------------- public functions
def eigh(x: Tensor, UPLO: str = "L", name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (ascending) and eigenvectors (columns) of each hermitian matrix, of which one triangle is read.

    x: [..., n, n].  UPLO: "L" or "U".  -> (w [..., n], real; v [..., n, n])
    Raises: ValueError for another UPLO, for matrices that are not square, for NaN.

    >>> from minipd.ops.creation import to_tensor
    >>> eigh(to_tensor([[3.0, 0.0], [0.0, 2.0]]))[0].tolist()
    [2.0, 3.0]
    """
    _check_hermitian("eigh", x, UPLO)
    return Eigh(x, UPLO=UPLO)


def eigvalsh(x: Tensor, UPLO: str = "L", name: str | None = None) -> Tensor:
    """The eigenvalues of each hermitian matrix, ascending: see `eigh`."""
    _check_hermitian("eigvalsh", x, UPLO)
    return Eigh(x, UPLO=UPLO)[0]


def _check_hermitian(what: str, x: Tensor, triangle: Any) -> None:
    require_matrix(what, x, square=True)
    if triangle not in ("L", "U"):
        raise ValueError(f"{what}: expected UPLO 'L' or 'U', the triangle to read, got {triangle!r}")


def eig(x: Tensor, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors (columns of length 1) of each square matrix; both are complex, in no given order.

    x: [..., n, n].  -> (w [..., n], v [..., n, n])
    Raises: ValueError for matrices that are not square, for NaN.

    >>> from minipd.ops.creation import to_tensor
    >>> abs(eig(to_tensor([[0.0, 1.0], [-1.0, 0.0]]))[0]).tolist()
    [1.0, 1.0]
    """
    require_matrix("eig", x, square=True)
    return Eig(x)


def eigvals(x: Tensor, name: str | None = None) -> Tensor:
    """The eigenvalues of each square matrix, complex: see `eig`."""
    return eig(x)[0]
