"""Singular values, and what is made of them: ranks and approximations of low rank."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.complex import conj, is_complex
from minipd.ops.creation import zeros, zeros_like
from minipd.ops.diagonal import diag_embed
from minipd.ops.making import into
from minipd.ops.math import maximum
from minipd.ops.matrices.eigen import Eigh
from minipd.ops.matrices.orthogonal import qr
from minipd.ops.matrices.parts import (
    adjoint,
    conjugated,
    diagonal_of,
    explained,
    is_wide,
    reciprocal_differences,
    require_matrix,
)
from minipd.ops.random import randn

__all__ = ["matrix_rank", "pca_lowrank", "svd", "svd_lowrank", "svdvals"]


@op("svd", Trait.MULTI, Trait.ALLOCATES)
class Svd:
    """x = u diag(s) vh: u and vh^H with orthonormal columns, s >= 0, descending.

    x: [..., m, n]; u: [..., m, k]; s: [..., k]; vh: [..., k, n]; k = min(m, n).  full_matrices: u and vh are square.
    The gradient exists where singular values differ.
    """

    outputs = ("u", "s", "vh")

    def infer_meta(x, *, full_matrices=False):
        require_matrix("svd", x)
        *batch, m, n = x.shape
        k = m if is_wide("svd", x.shape) else n
        return (Meta((*batch, m, m if full_matrices else k), x.dtype), Meta((*batch, k), dtypes.real_of(x.dtype)),
                Meta((*batch, n if full_matrices else k, n), x.dtype))

    def kernel(xp, x, *, full_matrices=False):
        with explained("svd", x, "holds NaN or infinity, or is a matrix on which the iteration does not converge"):
            return tuple(xp.linalg.svd(x, full_matrices=full_matrices))

    @conjugated
    def vjp_x(gs, u, s, vh, full_matrices):
        gu, gs_, gvh = gs
        if full_matrices and (gu is not None or gvh is not None):
            raise ValueError("svd: u and vh have no gradient with full_matrices=True, for the vectors beyond the "
                             "smaller side are arbitrary; use full_matrices=False")
        if full_matrices:
            k = s.payload.shape[-1]
            u, vh = u[..., :k], vh[..., :k, :]
        return _svd_gradient(u, s, adjoint(vh), gu, zeros_like(s) if gs_ is None else gs_,
                             None if gvh is None else adjoint(gvh))


def _svd_gradient(u: Tensor, s: Tensor, v: Tensor, gu: Tensor | None, gs: Tensor, gv: Tensor | None) -> Tensor:
    """For x = u diag(s) v^H.  (Townsend, "Differentiating the Singular Value Decomposition", 2016; for complex x, Wan
    and Zhang 2019: the phases of u and v are not determined, and what a loss that does not depend on them needs is the
    imaginary part of the diagonal of u^H gu.)

    Inside of the columns of u and v, gradients divide by s_j^2 - s_i^2; outside of them, by s.
    """
    inside = diag_embed(cast(gs, u.dtype) if is_complex(u) else gs)
    over = reciprocal_differences(s * s)
    row, column = s.unsqueeze(-1), s.unsqueeze(-2)
    outside = None
    if gu is not None:
        ugu = adjoint(u) @ gu
        inside = inside + (ugu - adjoint(ugu)) * over * column
        if is_complex(u):
            phase = diagonal_of(ugu)
            inside = inside + diag_embed((phase - conj(phase)) / (s * 2.0))
        outside = (gu - u @ ugu) / column @ adjoint(v)
    if gv is not None:
        vgv = adjoint(v) @ gv
        inside = inside + row * ((vgv - adjoint(vgv)) * over)
        beyond = u @ adjoint((gv - v @ vgv) / column)
        outside = beyond if outside is None else outside + beyond
    gx = u @ inside @ adjoint(v)
    return gx if outside is None else gx + outside


# ------------------------------------------------------------------------------------------- public functions
def svd(x: Tensor, full_matrices: bool = False, name: str | None = None, *,
        out: tuple[Tensor, Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The factors (u, s, vh) of each matrix x = u diag(s) vh, with singular values s >= 0, the largest first.

    x: [..., m, n].  u: [..., m, k], s: [..., k], vh: [..., k, n], k = min(m, n); with full_matrices, u and vh are
    square.  Gradients of u and vh exist where the singular values differ.
    Raises: ValueError for NaN or infinity in x.

    >>> from minipd.ops.creation import to_tensor
    >>> svd(to_tensor([[0.0, 2.0], [3.0, 0.0]]))[1].tolist()
    [3.0, 2.0]
    """
    require_matrix("svd", x)
    results = Svd(x, full_matrices=bool(full_matrices))
    return results if out is None else tuple(map(into, out, results))  # type: ignore[return-value]


def svdvals(x: Tensor, name: str | None = None) -> Tensor:
    """The singular values of each matrix, the largest first: [..., m, n] -> [..., min(m, n)]."""
    require_matrix("svdvals", x)
    return Svd(x)[1]


def matrix_rank(x: Tensor, tol: Any = None, hermitian: bool = False, atol: Any = None, rtol: Any = None,
                name: str | None = None) -> Tensor:
    """How many singular values of each matrix (of a hermitian one: absolute eigenvalues) are above a tolerance.

    x: [..., m, n].  tol: the tolerance, a number or a tensor that broadcasts against [...].  Or it is the larger of
    atol and rtol * (the largest singular value); if neither is given, rtol is max(m, n) times the dtype's epsilon.
    -> int64 [...]
    Raises: ValueError if tol is given together with atol or rtol.

    >>> from minipd.ops.creation import ones
    >>> matrix_rank(ones([3, 2])).item()
    1
    """
    require_matrix("matrix_rank", x, square=hermitian)
    if tol is not None and (atol is not None or rtol is not None):
        raise ValueError("matrix_rank: expected either tol or atol and rtol, got both")
    *batch, m, n = x.payload.shape
    if 0 in (m, n):
        return zeros(batch, "int64")
    s = Eigh(x)[0].abs() if hermitian else Svd(x)[1]
    largest = s.max(-1)
    if tol is None:
        if atol is None and rtol is None:
            rtol = max(m, n) * float(dtypes.finfo(s.dtype).eps)  # type: ignore[attr-defined]
        tol = largest * (0.0 if rtol is None else rtol)
        tol = tol if atol is None else maximum(tol, atol)
    above = s > (tol.unsqueeze(-1) if isinstance(tol, Tensor) and tol.ndim else tol)
    return cast(above, "int64").sum(-1)


def svd_lowrank(x: Tensor, q: int | None = None, niter: int = 2, M: Tensor | None = None,
                name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The q largest singular values of each matrix x (or x - M) and their vectors, nearly: x = u diag(s) v^H.

    A random q-dimensional subspace is turned `niter` times towards the leading ones.  (Halko, Martinsson, Tropp 2009,
    algorithms 4.4 and 5.1.)
    x: [..., m, n].  q: min(6, m, n) unless given.  -> u [..., m, q], s [..., q], v [..., n, q]
    Raises: ValueError for q outside of 0 .. min(m, n), or niter outside of 0 .. 1000.

    >>> from minipd.ops.creation import ones
    >>> [part.shape for part in svd_lowrank(ones([5, 3]), q=2)]
    [paddle.Size([5, 2]), paddle.Size([2]), paddle.Size([3, 2])]
    """
    x, q = _lowrank("svd_lowrank", x, q, niter)
    return _leading(x if M is None else x - M, q, niter)


def pca_lowrank(x: Tensor, q: int | None = None, center: bool = True, niter: int = 2,
                name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The leading principal components of n features in m observations: `svd_lowrank` of x less the mean of its rows.

    x: [..., m, n].  center: False if the mean is 0 already.  -> u [..., m, q], s [..., q], v [..., n, q]
    Raises: as `svd_lowrank`.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[1.0, 7.0], [3.0, 7.0]])
    >>> [round(s, 4) for s in pca_lowrank(x, q=1)[1].tolist()]
    [1.4142]
    """
    x, q = _lowrank("pca_lowrank", x, q, niter)
    return _leading(x - x.mean(-2, keepdim=True) if center else x, q, niter)


def _lowrank(what: str, x: Tensor, q: int | None, niter: int) -> tuple[Tensor, int]:
    require_matrix(what, x)
    side = min(x.payload.shape[-2:])
    q = min(6, side) if q is None else q
    if not 0 <= q <= side:
        raise ValueError(f"{what}: expected q from 0 to {side}, the smaller side of {describe(x)}, got {q}")
    if not 0 <= niter <= 1000:
        raise ValueError(f"{what}: expected niter from 0 to 1000, got {niter}; a few iterations are enough")
    return x, q


def _leading(x: Tensor, q: int, niter: int) -> tuple[Tensor, Tensor, Tensor]:
    basis, _ = qr(x @ randn([x.payload.shape[-1], q], x.dtype))
    for _ in range(niter):
        across, _ = qr(adjoint(x) @ basis)
        basis, _ = qr(x @ across)
    u, s, vh = Svd(adjoint(basis) @ x)
    return basis @ u, s, adjoint(vh)
