"""Functions of a matrix: powers, the exponential."""

from __future__ import annotations

import functools
from typing import Any

from minipd.framework.meta import Meta
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.creation import zeros_like
from minipd.ops.joining import concat
from minipd.ops.linalg import matmul
from minipd.ops.matrices.equations import inverse
from minipd.ops.matrices.parts import identity_like, matrix_transpose, require_matrix
from minipd.ops.slicing import slice

__all__ = ["matrix_exp", "matrix_power"]

#: Numerator coefficients of the (13, 13) Pade approximant to e^x; the denominator's alternate in sign.  It is exact to
#: double precision up to a 1-norm of RADIUS.  (Higham 2005, "The Scaling and Squaring Method Revisited", table 2.3.)
PADE = [1.0]
for _k in range(13):
    PADE.append(PADE[-1] * (13 - _k) / ((26 - _k) * (_k + 1)))
RADIUS = 5.371920351148152


@op("matrix_exp", Trait.ALLOCATES)
class MatrixExp:
    """e^x = I + x + x^2 / 2 + ... for each square matrix x."""

    def infer_meta(x):
        require_matrix("matrix_exp", x, square=True)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x):                  # e^x = (e^(x / 2^s))^(2^s), with s for which the approximant serves
        if not x.size:
            return xp.array(x)
        norm = xp.abs(x).sum(-2).max(-1)[..., None, None]
        with xp.errstate(divide="ignore", invalid="ignore"):
            s = xp.where(xp.isfinite(norm) & (norm > RADIUS), xp.ceil(xp.log2(norm / RADIUS)), 0)
        e = _pade(xp, x * xp.exp2(-s).astype(norm.dtype))
        for step in range(int(s.max())):
            e = xp.where(step < s, e @ e, e)
        return e

    def vjp_x(g, x):
        # The derivative in direction d is the upper right block of exp [[x, d], [0, x]]; its transpose, the same at
        # x^T.  (Najfeld, Havel 1995.)
        xt, n = matrix_transpose(x), x.payload.shape[-1]
        block = concat([concat([xt, g], -1), concat([zeros_like(g), xt], -1)], -2)
        return slice(MatrixExp(block), [-2, -1], [0, n], [n, n + n])


def _pade(xp: Any, x: Any) -> Any:
    """Odd powers change their sign in the denominator: with the even part v and the odd part u, (v - u)^-1 (v + u)."""
    eye = xp.eye(x.shape[-1], dtype=x.dtype)
    x2 = x @ x
    even, odd, power = PADE[0] * eye, PADE[1] * eye, eye
    for k in range(2, 14, 2):
        power = power @ x2
        even = even + PADE[k] * power
        odd = odd + PADE[k + 1] * power
    u = x @ odd
    return xp.linalg.solve(even - u, even + u).astype(x.dtype, copy=False)


# ------------------------------------------------------------------------------------------- public functions
def matrix_exp(x: Tensor, name: str | None = None) -> Tensor:
    """e^x for each square matrix x (which is not e to the power of each element).

    x: [..., n, n], floating or complex.

    >>> from minipd.ops.creation import to_tensor
    >>> matrix_exp(to_tensor([[0.0, 1.0], [0.0, 0.0]])).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    require_matrix("matrix_exp", x, square=True)
    return MatrixExp(x)


def matrix_power(x: Tensor, n: int, name: str | None = None) -> Tensor:
    """x @ x @ ... @ x, n times, for each square matrix x; of its inverse for n < 0, the identity for n = 0.

    x: [..., m, m].
    Raises: TypeError if n is no int; ValueError for a singular matrix and n < 0.

    >>> from minipd.ops.creation import to_tensor
    >>> matrix_power(to_tensor([[1.0, 1.0], [0.0, 1.0]]), 5).tolist()
    [[1.0, 5.0], [0.0, 1.0]]
    """
    require_matrix("matrix_power", x, square=True)
    if not isinstance(n, int):
        raise TypeError(f"matrix_power: expected an int for n, got {type(n).__name__}: {n!r}")
    if n == 0:
        return identity_like(x)
    square, n = (inverse(x), -n) if n < 0 else (x, n)
    factors = []
    while n:                            # the binary digits of n, the lowest first
        if n & 1:
            factors.append(square)
        n >>= 1
        if n:
            square = square @ square
    result = functools.reduce(matmul, factors)
    return x.clone() if result is x else result
