"""LU factors with row exchanges, packed as LAPACK packs them."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import arange
from minipd.ops.joining import concat
from minipd.ops.matrices.equations import TriangularSolve
from minipd.ops.matrices.parts import identity_like, is_wide, matrix_transpose, require_matrix
from minipd.ops.promotion import promoted
from minipd.ops.slicing import slice
from minipd.ops.triangle import Tril, Triu

__all__ = ["lu", "lu_solve", "lu_unpack"]


@op("lu", Trait.MULTI, Trait.ALLOCATES)
class Lu:
    """x = P L U for each matrix: L (below the diagonal, which is 1) and U (on it and above) packed into one.

    x, out: [..., m, n]; pivots: int32[..., k], k = min(m, n): row i was exchanged with row pivots[i], counted from 1;
    infos: int32[...]: the number of the first zero on the diagonal of U, 0 if there is none.
    """

    outputs = ("out", "pivots", "infos")

    def infer_meta(x):
        require_matrix("lu", x)
        *batch, m, n = x.shape
        i32 = dtypes.int32.np
        return Meta(x.shape, x.dtype), Meta((*batch, m if is_wide("lu", x.shape) else n), i32), Meta((*batch,), i32)

    def kernel(xp, x):
        *batch, m, n = x.shape
        k = min(m, n)
        if not x.size:
            return xp.zeros_like(x), xp.zeros((*batch, k), "int32"), xp.zeros(batch, "int32")
        with warnings.catch_warnings():         # of singular matrices, of which `infos` tells
            warnings.simplefilter("ignore")
            out, pivots = _lapack(xp).lu_factor(x, check_finite=False)
        zero = xp.diagonal(out, axis1=-2, axis2=-1) == 0
        infos = xp.where(zero.any(-1), zero.argmax(-1) + 1, 0)
        return out, (pivots + 1).astype("int32"), xp.asarray(infos).astype("int32")

    def vjp_x(gs, out, pivots):
        g = gs[0]
        if g is None:
            return None
        m, n = out.payload.shape[-2:]
        k = m if is_wide("lu", out.payload.shape) else n
        square, gs_ = _corner(out, k, k), _corner(g, k, k)
        low, up = Tril(square, diagonal=-1) + identity_like(square), Triu(square)
        in_low, in_up = matrix_transpose(low) @ Tril(gs_, diagonal=-1), Triu(gs_) @ matrix_transpose(up)
        below = right = None
        if not same(m, k):                  # x2 = L2 U
            below = slice(g, [-2], [k], [m])
            in_up = in_up - matrix_transpose(slice(out, [-2], [k], [m])) @ below
        if not same(n, k):                  # x2 = L U2
            right = slice(g, [-1], [k], [n])
            in_low = in_low - right @ matrix_transpose(slice(out, [-1], [k], [n]))
        inside = Tril(in_low, diagonal=-1) + Triu(in_up)
        gx = _left(low, _right(inside, up))
        if below is not None:
            gx = concat([gx, _right(below, up)], -2)
        if right is not None:
            gx = concat([gx, _left(low, right)], -1)
        return permutation(pivots, gx) @ gx


def _lapack(xp: Any) -> Any:
    return importlib.import_module("scipy.linalg" if xp.__name__ == "numpy" else "cupyx.scipy.linalg")


def _corner(x: Tensor, rows: Any, columns: Any) -> Tensor:
    return slice(x, [-2, -1], [0, 0], [rows, columns])


def _left(low: Tensor, y: Tensor) -> Tensor:
    """L^-T y, L with ones on its diagonal."""
    return TriangularSolve(low, y, upper=False, transpose=True, unitriangular=True)


def _right(y: Tensor, up: Tensor) -> Tensor:
    """y U^-T."""
    return matrix_transpose(TriangularSolve(up, matrix_transpose(y), upper=True))


@op("pivots_to_permutation", Trait.EXACT, Trait.DISCRETE, Trait.ALLOCATES)
class PivotsToPermutation:
    """The order of the rows after exchanging row i with row pivots[i] (counted from 1), for i = 0, 1, ...

    pivots: int[..., k]; like: [..., m, n], only its m is read; -> int64[..., m]: where each row came from.
    """

    def infer_meta(pivots, like: Meta):
        return Meta((*pivots.shape[:-1], like.shape[-2]), dtypes.int64.np)

    def kernel(xp, pivots, like):
        order = xp.broadcast_to(xp.arange(like.shape[-2]), (*pivots.shape[:-1], like.shape[-2])).copy()
        for i in range(pivots.shape[-1]):           # an exchange at a time, in all matrices at once
            other = pivots[..., i:i + 1] - 1
            moved = xp.take_along_axis(order, other, -1)
            xp.put_along_axis(order, other, order[..., i:i + 1], -1)
            order[..., i:i + 1] = moved
        return order


def permutation(pivots: Tensor, like: Tensor) -> Tensor:
    """The matrix P of x = P L U, [..., m, m], in the dtype of `like`, [..., m, n]."""
    order = PivotsToPermutation(pivots, like)
    m = like.payload.shape[-2]
    return cast(order.unsqueeze(-2) == arange(m).unsqueeze(-1), like.dtype)


# ------------------------------------------------------------------------------------------- public functions
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> Any:
    """The factors of each matrix x = P L U, packed: L below the diagonal (its own is 1), U on it and above.

    x: [..., m, n].  -> (lu [..., m, n]; pivots int32 [..., min(m, n)]: which row each was exchanged with, counted from
    1; with get_infos also infos int32 [...]: 0, or the number of the first zero on the diagonal of U).  `lu_unpack`
    takes the result apart.
    Raises: ValueError for pivot=False.

    >>> from minipd.ops.creation import to_tensor
    >>> packed, pivots = lu(to_tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> packed.tolist(), pivots.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [2, 2])
    """
    if not pivot:
        raise ValueError("lu: pivot=False is not supported: without exchanges of rows the factors need not exist")
    require_matrix("lu", x)
    out, pivots, infos = Lu(x)
    return (out, pivots, infos) if get_infos else (out, pivots)


def lu_unpack(x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True,
              name: str | None = None) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The matrices (P, L, U) of what `lu` gives: x = lu, y = pivots.  None for what is not asked for.

    x: [..., m, n].  y: [..., k], k = min(m, n).  -> P [..., m, m], L [..., m, k], U [..., k, n]

    >>> from minipd.ops.creation import to_tensor
    >>> P, L, U = lu_unpack(*lu(to_tensor([[1.0, 2.0], [4.0, 4.0]])))
    >>> P.tolist(), L.tolist(), U.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.25, 1.0]], [[4.0, 4.0], [0.0, 1.0]])
    """
    require_matrix("lu_unpack", x)
    low = up = None
    if unpack_ludata:
        m, n = x.payload.shape[-2:]
        k = m if is_wide("lu_unpack", x.payload.shape) else n
        left = _corner(x, m, k)
        low, up = Tril(left, diagonal=-1) + identity_like(left), Triu(_corner(x, k, n))
    return permutation(y, x) if unpack_pivots else None, low, up


def lu_solve(b: Tensor, lu: Tensor, pivots: Tensor, trans: str = "N", name: str | None = None) -> Tensor:
    """The X of A X = b, where `lu` and `pivots` are what `lu` gives for A.

    b: [..., n, k].  lu: [..., n, n].  trans "T": solve A^T X = b; "C": A^H X = b.
    Raises: ValueError for another `trans`, or sizes that do not fit.

    >>> from minipd.ops.creation import to_tensor
    >>> factors = Lu(to_tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> lu_solve(to_tensor([[2.0], [2.0]]), *factors[:2]).tolist()
    [[1.0], [0.5]]
    """
    if trans not in ("N", "T", "C"):
        raise ValueError(f"lu_solve: expected trans 'N', 'T' or 'C', got {trans!r}")
    require_matrix("lu_solve", lu, square=True)
    b, lu = promoted("lu_solve", b, lu)
    p = permutation(pivots, lu)
    if trans == "N":
        return TriangularSolve(lu, TriangularSolve(lu, matrix_transpose(p) @ b, upper=False, unitriangular=True))
    a = conj(lu) if trans == "C" else lu
    half = TriangularSolve(a, b, upper=True, transpose=True)
    return p @ TriangularSolve(a, half, upper=False, transpose=True, unitriangular=True)
