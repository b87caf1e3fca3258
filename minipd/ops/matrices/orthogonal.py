"""QR factors, and products of Householder reflections: the form in which LAPACK hands out a Q."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import zeros_like
from minipd.ops.diagonal import diag_embed
from minipd.ops.joining import concat
from minipd.ops.matrices.equations import TriangularSolve
from minipd.ops.matrices.parts import adjoint, conjugated, identity_like, is_wide, require_matrix
from minipd.ops.shapes import agree
from minipd.ops.slicing import slice
from minipd.ops.triangle import Tril, Triu

__all__ = ["householder_product", "ormqr", "qr"]

MODES = ("reduced", "complete", "r")


@op("qr", Trait.MULTI, Trait.ALLOCATES)
class Qr:
    """x = q r: q with orthonormal columns, r upper triangular.   x: [..., m, n]; q: [..., m, k]; r: [..., k, n].

    mode "reduced": k = min(m, n); "complete": k = m, so that q is square.
    """

    outputs = ("q", "r")

    def infer_meta(x, *, mode="reduced"):
        require_matrix("qr", x)
        *batch, m, n = x.shape
        k = m if mode == "complete" or is_wide("qr", x.shape) else n
        return Meta((*batch, m, k), x.dtype), Meta((*batch, k, n), x.dtype)

    def kernel(xp, x, *, mode="reduced"):
        return tuple(xp.linalg.qr(x, mode=mode))

    @conjugated
    def vjp_x(gs, x: Meta, q, r, mode):
        gq, gr = (zeros_like(out) if g is None else g for g, out in zip(gs, (q, r), strict=True))
        if is_wide("qr", x.shape):
            return _wide(q, r, gq, gr)
        if mode == "complete" and not same(*x.shape[-2:]):
            raise ValueError(f"qr: the gradient in mode 'complete' needs at most as many rows as columns, got "
                             f"{describe(x)}: the added columns of q are arbitrary; use mode 'reduced'")
        return _tall(q, r, gq, gr)


def _tall(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    """(gq + q reflected) r^-H; reflected: the lower triangle of r gr^H - gq^H q, above it its adjoint, on the diagonal
    the real part, for LAPACK makes that of r real.  (Walter, Lehmann 2018.)"""
    low = Tril(r @ adjoint(gr) - adjoint(gq) @ q)
    reflected = (low + adjoint(low)) * (1.0 - identity_like(low) * 0.5)
    return adjoint(TriangularSolve(r, adjoint(gq + q @ reflected), upper=True))


def _wide(q: Tensor, r: Tensor, gq: Tensor, gr: Tensor) -> Tensor:
    """x = [x1 x2] = q [r1 r2]: q and r1 are the factors of the square x1, and r2 = q^H x2."""
    m, n = r.payload.shape[-2:]
    r1, r2 = slice(r, [-1], [0], [m]), slice(r, [-1], [m], [n])
    gr1, gr2 = slice(gr, [-1], [0], [m]), slice(gr, [-1], [m], [n])
    x2 = q @ r2
    return concat([_tall(q, r1, gq + x2 @ adjoint(gr2), gr1), q @ gr2], -1)


# ------------------------------------------------------------------------------------------- public functions
def qr(x: Tensor, mode: str = "reduced", name: str | None = None) -> Any:
    """The factors (q, r) of each matrix x = q r: q with orthonormal columns, r upper triangular.

    x: [..., m, n].  mode "reduced": q [..., m, k], r [..., k, n], k = min(m, n); "complete": k = m; "r": r alone.
    Raises: ValueError for another mode.

    >>> from minipd.ops.creation import to_tensor
    >>> q, r = qr(to_tensor([[0.0, 2.0], [3.0, 1.0]]))
    >>> abs(r).tolist()
    [[3.0, 1.0], [0.0, 2.0]]
    """
    if mode not in MODES:
        raise ValueError(f"qr: expected mode {', '.join(map(repr, MODES))}, got {mode!r}")
    require_matrix("qr", x)
    q, r = Qr(x, mode="complete" if mode == "complete" else "reduced")
    return r if mode == "r" else (q, r)


def _reflections(what: str, x: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The product of the reflections I - tau_i v_i v_i^H as I - V T V^H: V and T.

    v_i is column i of x below the diagonal, 1 on it, 0 above.  T is upper triangular, and its inverse has 1 / tau on
    the diagonal and above it what V^H V has there.  (Schreiber, Van Loan 1989; Puglisi 1992.)  So
    T = (I + diag(tau) striu(V^H V))^-1 diag(tau), which a tau of 0 does not disturb.
    """
    require_matrix(what, x)
    m, n = x.payload.shape[-2:]
    k = tau.payload.shape[-1] if tau.ndim else None
    if tau.ndim != x.ndim - 1 or tuple(tau.payload.shape[:-1]) != tuple(x.payload.shape[:-2]) or \
            not is_symbolic(m) and not k <= n <= m:
        raise ValueError(f"{what}: expected x of shape [..., m, n] and tau of shape [..., k] with m >= n >= k, got "
                         f"{describe(x)} and {describe(tau)}")
    v = slice(x, [-1], [0], [k])
    v = Tril(v, diagonal=-1) + identity_like(v)
    inner = Triu(adjoint(v) @ v, diagonal=1)
    t = TriangularSolve(tau.unsqueeze(-1) * inner, diag_embed(tau), upper=True, unitriangular=True)
    return v, t


def householder_product(x: Tensor, tau: Tensor, name: str | None = None) -> Tensor:
    """The first n columns of the product of k Householder reflections, (I - tau_1 v_1 v_1^H) (I - tau_2 v_2 v_2^H) ...

    x: [..., m, n], with v_i in column i below the diagonal (1 on it).  tau: [..., k], m >= n >= k.

    >>> from minipd.ops.creation import to_tensor
    >>> householder_product(to_tensor([[0.0], [1.0]]), to_tensor([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    v, t = _reflections("householder_product", x, tau)
    n = x.payload.shape[-1]
    return identity_like(x) - v @ (t @ adjoint(slice(v, [-2], [0], [n])))


def ormqr(x: Tensor, tau: Tensor, y: Tensor, left: bool = True, transpose: bool = False,
          name: str | None = None) -> Tensor:
    """Q y, or Q^H y (transpose), or y Q, y Q^H (left=False), where Q is the whole product of reflections (m rows and
    columns) that `householder_product` gives the first columns of.

    x: [..., m, n].  tau: [..., k].  y: [..., m, p] (left) or [..., p, m].
    Raises: ValueError if the sizes do not fit.

    >>> from minipd.ops.creation import to_tensor
    >>> ormqr(to_tensor([[0.0], [1.0]]), to_tensor([1.0]), to_tensor([[1.0], [2.0]])).tolist()
    [[-2.0], [-1.0]]
    """
    v, t = _reflections("ormqr", x, tau)
    side = -2 if left else -1
    if y.ndim < 2 or not agree(y.payload.shape[side], x.payload.shape[-2], "ormqr: y"):
        raise ValueError(f"ormqr: expected y with {x.payload.shape[-2]} {'rows' if left else 'columns'}, to be "
                         f"multiplied by Q of {describe(x)}, got {describe(y)}")
    t = adjoint(t) if transpose else t
    return y - v @ (t @ (adjoint(v) @ y)) if left else y - y @ v @ t @ adjoint(v)
