"""Norms of vectors and matrices, and distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.cast import cast
from minipd.ops.complex import conj
from minipd.ops.creation import full_like
from minipd.ops.elementary import sqrt
from minipd.ops.gather import index_select
from minipd.ops.making import into
from minipd.ops.math import where
from minipd.ops.matrices.equations import inverse
from minipd.ops.matrices.parts import matrix_transpose, require_matrix
from minipd.ops.matrices.singular_values import svdvals
from minipd.ops.promotion import as_tensor, promoted
from minipd.ops.reduce import unreduced
from minipd.ops.shapes import a_number, normalize_axes, normalize_axis, reduced_shape, require_floating, require_inexact

__all__ = ["cdist", "cond", "dist", "matrix_norm", "norm", "pdist", "renorm", "vector_norm"]

INF = float("inf")


@op("p_norm")
class PNorm:
    """(sum |x|^porder)^(1 / porder) over `axis`, porder > 0 and finite; the gradient at 0 is 0."""

    def infer_meta(x, *, porder, axis, keepdim=False):
        return Meta(reduced_shape(x.shape, axis, keepdim), dtypes.real_of(x.dtype))

    def kernel(xp, x, *, porder, axis, keepdim=False):
        return _p_norm(xp, x, porder, axis, keepdim)

    def kernel_out(xp, out, x, *, porder, axis, keepdim=False):
        out[...] = _p_norm(xp, x, porder, axis, keepdim)

    def vjp_x(g, x, out, porder, axis, keepdim):
        # x |x|^(p - 2) / out^(p - 1); a power of |x| below 0 is of 1 where x is 0, for x itself makes it 0
        total = unreduced(out, x, axis, keepdim)
        nowhere = cast(total == 0.0, total.dtype)
        scaled = unreduced(g, x, axis, keepdim) / (total + nowhere) ** (porder - 1.0) * (1.0 - nowhere)
        if porder == 2:
            return conj(x) * scaled
        size = x.abs()
        zero = size == 0.0
        return conj(x) * (where(zero, full_like(size, 1.0), size) ** (porder - 2.0) * scaled)


def _p_norm(xp: Any, x: Any, porder: float, axis: tuple, keepdim: bool) -> Any:
    size = xp.abs(x)
    if porder == 2:
        return xp.sqrt(xp.sum(size * size, axis=axis, keepdims=keepdim))
    if porder == 1:
        return xp.sum(size, axis=axis, keepdims=keepdim)
    return xp.sum(size ** porder, axis=axis, keepdims=keepdim) ** (1.0 / porder)


def vector_norm(x: Tensor, p: float = 2.0, axis: int | Sequence[int] | None = None, keepdim: bool = False,
                name: str | None = None, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """The p-norm over `axis` (None: of all elements): (sum |x|^p)^(1 / p).

    p: inf and -inf mean the largest and smallest |x|, 0 how many are not 0.  dtype: to compute in.
    Raises: TypeError for ints.

    >>> from minipd.ops.creation import to_tensor
    >>> vector_norm(to_tensor([3.0, -4.0])).item(), vector_norm(to_tensor([3.0, -4.0]), float("inf")).item()
    (5.0, 4.0)
    """
    x = x if dtype is None else cast(x, dtype)
    require_inexact("vector_norm", x.payload)
    if isinstance(p, bool) or not isinstance(p, (int, float)):
        raise ValueError(f"vector_norm: expected a number for p, got {p!r}")
    axes = normalize_axes("vector_norm", axis, x.ndim)
    return into(out, _vector_norm(x, float(p), axes, keepdim))


def _vector_norm(x: Tensor, p: float, axes: tuple, keepdim: bool) -> Tensor:
    if p == INF:
        return x.abs().max(axes, keepdim=keepdim)
    if p == -INF:
        return x.abs().min(axes, keepdim=keepdim)
    if p == 0:
        return cast(x != 0.0, dtypes.of(dtypes.real_of(x.payload.dtype))).sum(axes, keepdim=keepdim)
    if p < 0:
        return (x.abs() ** p).sum(axes, keepdim=keepdim) ** (1.0 / p)
    return PNorm(x, porder=p, axis=axes, keepdim=bool(keepdim))


def matrix_norm(x: Tensor, p: Any = "fro", axis: Any = (-2, -1), keepdim: bool = False,
                name: str | None = None) -> Tensor:
    """A norm of each matrix: "fro" (Frobenius) or "nuc" (the sum of singular values), or by number: 2 and -2 the
    largest and smallest singular value, 1 and -1 the largest and smallest sum of a column's |x|, inf and -inf a row's.

    axis: which two dimensions are rows and columns.
    Raises: ValueError for another norm, or axes that are not two.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[1.0, -2.0], [3.0, 4.0]])
    >>> matrix_norm(x, 1).item(), matrix_norm(x, float("inf")).item()
    (6.0, 7.0)
    """
    require_inexact("matrix_norm", x.payload)
    if not isinstance(axis, (list, tuple)) or len(axis) != 2:
        raise ValueError(f"matrix_norm: expected two axes, of rows and columns, got {axis!r}")
    row, column = (normalize_axis("matrix_norm", a, x.ndim) for a in axis)
    if row == column:
        raise ValueError(f"matrix_norm: expected two different axes, got {tuple(axis)} of {describe(x)}")
    if p == "fro":
        return PNorm(x, porder=2.0, axis=tuple(sorted((row, column))), keepdim=bool(keepdim))
    if p in (1, -1, INF, -INF):
        summed, other = (row, column) if p in (1, -1) else (column, row)
        sums = x.abs().sum(summed, keepdim=True)
        result = (sums.max if p > 0 else sums.min)(other, keepdim=True)
        return result if keepdim else result.squeeze([row, column])
    if p not in ("nuc", 2, -2):
        raise ValueError(f"matrix_norm: expected p 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {p!r}")
    rest = [a for a in range(x.ndim) if a not in (row, column)]
    s = svdvals(x.transpose([*rest, row, column]))
    result = s.sum(-1) if p == "nuc" else s.max(-1) if p == 2 else s.min(-1)
    return result.unsqueeze(sorted((row, column))) if keepdim else result


def norm(x: Tensor, p: Any = None, axis: Any = None, keepdim: bool = False, out: Tensor | None = None,
         dtype: Any = None, name: str | None = None) -> Tensor:
    """The norm of vectors (one axis, or all elements) or of matrices (two axes).

    p: as for `vector_norm` and `matrix_norm`; by default 2 (of vectors) or "fro" (of matrices), which is the same sum.
    axis: an int, two ints, or None: all elements as one vector.
    Raises: ValueError for a norm that there is not.

    >>> from minipd.ops.creation import to_tensor
    >>> norm(to_tensor([[3.0, 4.0], [6.0, 8.0]]), axis=-1).tolist()
    [5.0, 10.0]
    """
    x = x if dtype is None else cast(x, dtype)
    require_inexact("norm", x.payload)
    if isinstance(axis, (list, tuple)) and len(axis) == 2 and p is not None:
        return into(out, matrix_norm(x, p, axis, keepdim))
    if p == "nuc":
        if axis is not None or x.ndim != 2:
            raise ValueError(f"norm: expected two axes for the norm 'nuc', of rows and columns, got axis={axis} for "
                             f"{describe(x)}")
        return into(out, matrix_norm(x, p, (0, 1), keepdim))
    if isinstance(p, str) and p != "fro":
        raise ValueError(f"norm: expected p 'fro', 'nuc' or a number, got {p!r}")
    return into(out, vector_norm(x, 2.0 if p is None or p == "fro" else p, axis, keepdim))


def cond(x: Tensor, p: Any = None, name: str | None = None) -> Tensor:
    """The condition number of each matrix: the norm of x times that of its inverse.

    x: [..., n, n]; [..., m, n] for p None or 2 (the largest singular value over the smallest) or -2 (its inverse).
    p: as for `matrix_norm`.
    Raises: ValueError for another norm; for a singular matrix too, except that for p None or 2 the answer is inf.

    >>> from minipd.ops.creation import to_tensor
    >>> cond(to_tensor([[4.0, 0.0], [0.0, 2.0]])).item()
    2.0
    """
    p = 2 if p is None else p
    require_matrix("cond", x, square=p not in (2, -2))
    if p not in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        raise ValueError(f"cond: expected p None, 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, got {p!r}")
    if p in (2, -2):
        s = svdvals(x)
        return s.max(-1) / s.min(-1) if p == 2 else s.min(-1) / s.max(-1)
    return matrix_norm(x, p) * matrix_norm(inverse(x), p)


def renorm(x: Tensor, p: float, axis: int, max_norm: float) -> Tensor:
    """x with every slice along `axis` whose p-norm is above `max_norm` scaled down to it.

    p: positive, infinity too.
    Raises: ValueError for p or max_norm that are not positive.

    >>> from minipd.ops.creation import to_tensor
    >>> renorm(to_tensor([[6.0, 8.0], [0.25, 0.0]]), 2.0, 0, 5.0).tolist()
    [[3.0, 4.0], [0.25, 0.0]]
    """
    x = as_tensor("renorm", x)
    require_floating("renorm", x.payload)
    p, max_norm = a_number("renorm", "p", p), a_number("renorm", "max_norm", max_norm)
    if p <= 0 or max_norm < 0:
        raise ValueError(f"renorm: expected a positive p and a max_norm that is not negative, got p={p}, "
                         f"max_norm={max_norm}")
    axis = normalize_axis("renorm", axis, x.ndim)
    norms = _vector_norm(x, float(p), tuple(i for i in range(x.ndim) if i != axis), True)
    return x * where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)


# ------------------------------------------------------------------------------------------------ distances
@whole
def dist(x: Tensor, y: Tensor, p: float = 2, name: str | None = None) -> Tensor:
    """The p-norm of x - y, broadcast, as one vector: see `vector_norm`.

    >>> from minipd.ops.creation import to_tensor
    >>> dist(to_tensor([3.0, 0.0]), to_tensor([0.0, 4.0])).item()
    5.0
    """
    return vector_norm(x - y, p)


def cdist(x: Tensor, y: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
          name: str | None = None) -> Tensor:
    """The distance (p-norm of the difference) of every row of x to every row of y.

    x: [..., m, k].  y: [..., n, k]; dimensions before those broadcast.  -> [..., m, n]
    compute_mode: whether Euclidean distances may be computed by a matrix product ("use_mm_for_euclid_dist"; by default
    for more than 25 rows; "donot_use_mm_for_euclid_dist"), which is faster and loses digits of small distances.
    Raises: ValueError for other shapes, a negative p, or another mode.

    >>> from minipd.ops.creation import to_tensor
    >>> cdist(to_tensor([[0.0, 0.0], [3.0, 0.0]]), to_tensor([[0.0, 4.0]])).tolist()
    [[4.0], [5.0]]
    """
    x, y = promoted("cdist", x, y)
    if x.ndim < 2 or y.ndim < 2 or x.payload.shape[-1] != y.payload.shape[-1]:
        raise ValueError(f"cdist: expected [..., m, k] and [..., n, k], got {describe(x)} and {describe(y)}")
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"cdist: expected compute_mode {', '.join(map(repr, modes))}, got {compute_mode!r}")
    if p < 0:
        raise ValueError(f"cdist: expected p >= 0, got {p}")
    many = compute_mode == modes[1] or compute_mode == modes[0] and max(x.payload.shape[-2], y.payload.shape[-2]) > 25
    if p == 2 and many and x.payload.shape[-1]:
        return _by_product(x, y)
    return _vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), float(p), (max(x.ndim, y.ndim),), False)


def _by_product(x: Tensor, y: Tensor) -> Tensor:
    """|x - y|^2 = |x|^2 - 2 x y + |y|^2; what rounding makes of 0 counts as 0, without a gradient."""
    squared = (x * x).sum(-1, keepdim=True) - (x @ matrix_transpose(y)) * 2.0 + (y * y).sum(-1).unsqueeze(-2)
    apart = squared > 0.0
    return where(apart, sqrt(where(apart, squared, full_like(squared, 1.0))), full_like(squared, 0.0))


def pdist(x: Tensor, p: float = 2.0, name: str | None = None) -> Tensor:
    """The distances of the rows of x to those after them: (0, 1), (0, 2), ..., (1, 2), ...

    x: [n, k].  -> [n (n - 1) / 2]
    Raises: ValueError for other shapes, or a negative p.

    >>> from minipd.ops.creation import to_tensor
    >>> pdist(to_tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    if x.ndim != 2:
        raise ValueError(f"pdist: expected a matrix, a row for each point, got {describe(x)}")
    n = x.payload.shape[0]
    first, second = np.triu_indices(n, 1)
    apart = index_select(x, Tensor(first)) - index_select(x, Tensor(second))
    return _vector_norm(apart, float(p), (1,), False)
