"""The pseudo-inverse, and linear equations that have no solution or many."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import broadcast_to
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import zeros
from minipd.ops.matrices.equations import TriangularSolve
from minipd.ops.matrices.orthogonal import Qr
from minipd.ops.matrices.parts import adjoint, conjugated, explained, is_wide, require_matrix
from minipd.ops.matrices.singular_values import matrix_rank, svdvals
from minipd.ops.promotion import promoted

__all__ = ["lstsq", "pinv"]

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@op("pinv", Trait.ALLOCATES)
class Pinv:
    """The Moore-Penrose pseudo-inverse of each matrix, where singular values up to rcond times the largest count as 0.

    x: [..., m, n]; rcond: a number, or [...].  The gradient is that of matrices of the same rank.
    """

    def infer_meta(x, rcond, *, hermitian=False):
        require_matrix("pinv", x, square=hermitian)
        *batch, m, n = x.shape
        return Meta((*batch, n, m), x.dtype)

    def kernel(xp, x, rcond, *, hermitian=False):
        with explained("pinv", x, "holds NaN or infinity, or is a matrix on which the iteration does not converge"):
            return xp.linalg.pinv(x, rcond, hermitian)

    @conjugated
    def vjp_x(g, x, out):               # Golub, Pereyra 1973, transposed
        gh, outh = adjoint(g), adjoint(out)
        left = gh @ out @ outh          # (I - x out) gh out out^H, and so from the right
        right = outh @ out @ gh
        return left - x @ (out @ left) + right - right @ out @ x - outh @ g @ outh


def pinv(x: Tensor, rcond: Any = 1e-15, hermitian: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverse of each matrix: [..., m, n] -> [..., n, m].

    rcond: singular values up to rcond times the largest count as 0; a number, or a tensor [...].  hermitian: x is,
    which saves half of the work.
    Raises: ValueError for NaN or infinity in x.

    >>> from minipd.ops.creation import to_tensor
    >>> pinv(to_tensor([[2.0, 0.0]])).tolist()
    [[0.5], [0.0]]
    """
    require_matrix("pinv", x, square=hermitian)
    if isinstance(rcond, Tensor):
        rcond = broadcast_to(cast(rcond, dtypes.of(dtypes.real_of(x.payload.dtype))), x.payload.shape[:-2])
    return Pinv(x, rcond, hermitian=bool(hermitian))


def lstsq(x: Tensor, y: Tensor, rcond: float | None = None, driver: str | None = None,
          name: str | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The X that makes |x X - y| least, and of all such the shortest.

    x: [..., m, n].  y: [..., m, k].
    rcond: singular values up to rcond times the largest count as 0; by default max(m, n) times the dtype's epsilon.
    driver: "gels" (x has full rank, which is not checked), "gelsy" (the default), "gelsd", "gelss"; as in LAPACK, the
    last two also tell the singular values.
    -> (solution [..., n, k]; residuals |x X - y|^2 [..., k], empty unless m > n and every x has rank n; rank int32
    [...], empty for gels; singular values [..., min(m, n)], empty for gels and gelsy).  Eager only, for shapes depend
    on values.
    Raises: ValueError for another driver, or sizes that do not fit.

    >>> from minipd.ops.creation import to_tensor
    >>> lstsq(to_tensor([[1.0], [1.0]]), to_tensor([[1.0], [3.0]]))[1].tolist()
    [2.0]
    """
    require_matrix("lstsq", x)
    require_matrix("lstsq", y)
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        raise ValueError(f"lstsq: expected driver {', '.join(map(repr, DRIVERS))}, got {driver!r}")
    x, y = promoted("lstsq", x, y)
    m, n = x.payload.shape[-2:]
    if y.payload.shape[-2] != m:
        raise ValueError(f"lstsq: expected a right-hand side of {m} rows for {describe(x)}, got {describe(y)}")
    rcond = max(m, n) * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond  # type: ignore[attr-defined]
    none = zeros([0], x.dtype)
    solution = _of_full_rank(x, y) if driver == "gels" else pinv(x, rcond) @ y
    rank = cast(matrix_rank(x, rtol=rcond), "int32")
    least = m > n and (driver == "gels" or bool((rank == n).all()))
    rest = (x @ solution - y).abs()
    return (solution, (rest * rest).sum(-2) if least else none,
            zeros([0], "int64") if driver == "gels" else rank,
            svdvals(x) if driver in ("gelsd", "gelss") else none)


def _of_full_rank(x: Tensor, y: Tensor) -> Tensor:
    """By the QR factors of x, or, if it is wide, of x^H = q r: the shortest solution is q (r^-H y)."""
    if is_wide("lstsq", x.payload.shape):
        q, r = Qr(adjoint(x))
        return q @ TriangularSolve(conj(r), y, upper=True, transpose=True)
    q, r = Qr(x)
    return TriangularSolve(r, adjoint(q) @ y, upper=True)
