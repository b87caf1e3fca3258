"""A product reads its operands transposed, and gives its result transposed, without a transposition.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("matmul_transpose_fuse_pass", lambda q, k: q @ k.transpose([0, 2, 1]), (2, 3, 4), (2, 5, 4)))
    before
      a = transpose(k, perm=(0, 2, 1))
      b = matmul(q, a)
      return b
    after
      a = matmul(q, k, transpose_y=True)
      return a

The last two dimensions must be the ones that change places: y x is (x^T y^T)^T, in each batch.  A factor may have a
transpose flag already.  As Paddle's pass of this name; on the same programs both leave the same number of operations.

Of weights, fold transpositions first (`constant_folding_pass`): of a weight that lies in the order in which it is read,
products take up to a third less time than with a flag.
"""

from __future__ import annotations

from minipd.passes.drr import drr
from minipd.passes.formula import ops

__all__: list[str] = []

NAME = "matmul_transpose_fuse_pass"


def swaps_last_two(perm: tuple) -> bool:
    """Whether a transposition is that of the matrices in a batch."""
    n = len(perm)
    return n >= 2 and tuple(perm) == (*range(n - 2), n - 1, n - 2)


@drr(NAME)
class TransposedLeft:
    """x^T y."""

    def source(x, y, *, perm, left, right):
        return ops.matmul(ops.transpose(x, perm=perm), y, transpose_x=left, transpose_y=right)

    constraint = swaps_last_two

    def result(x, y, left, right):
        return ops.matmul(x, y, transpose_x=not left, transpose_y=right)


@drr(NAME)
class TransposedRight:
    """x y^T."""

    def source(x, y, *, perm, left, right):
        return ops.matmul(x, ops.transpose(y, perm=perm), transpose_x=left, transpose_y=right)

    constraint = swaps_last_two

    def result(x, y, left, right):
        return ops.matmul(x, y, transpose_x=left, transpose_y=not right)


@drr(NAME)
class TransposedProduct:
    """(x y)^T = y^T x^T."""

    def source(x, y, *, perm, left, right):
        return ops.transpose(ops.matmul(x, y, transpose_x=left, transpose_y=right), perm=perm)

    constraint = swaps_last_two

    def result(x, y, left, right):
        return ops.matmul(y, x, transpose_x=not right, transpose_y=not left)
