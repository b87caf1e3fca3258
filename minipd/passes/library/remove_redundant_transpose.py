"""Two transpositions, one after the other, become one, or none if the second undoes the first.

    >>> from minipd.passes.show import before_after, show
    >>> show(before_after("remove_redundant_transpose_pass", lambda x: x.transpose([1, 0, 2]).transpose([2, 0, 1]),
    ...                   "f32[2, 3, 4]"))
    before
      a = transpose(x, perm=(1, 0, 2))
      b = transpose(a, perm=(2, 0, 1))
      return b
    after
      a = transpose(x, perm=(2, 1, 0))
      return a

Where both remain one, the first must serve the second only; where the second undoes the first, it may have other
readers.  Paddle's pass of this name leaves those, and leaves the same number of operations of other programs.
"""

from __future__ import annotations

from minipd.passes.base import PatternRewritePass
from minipd.passes.drr import drr
from minipd.passes.formula import ops
from minipd.passes.table import register_pass

__all__ = ["RemoveRedundantTranspose"]


@register_pass("remove_redundant_transpose_pass")
class RemoveRedundantTranspose(PatternRewritePass):
    """Transpositions in a row become one, or none."""

    exact = True
    opt_level = 1


@drr("remove_redundant_transpose_pass")
class TransposeOfTranspose:
    """Dimension i of the result is dimension second[i] of the first result, which is dimension first[second[i]]."""

    def source(x, *, first, second):
        return ops.transpose(ops.transpose(x, perm=first), perm=second)

    def result(x, first, second):
        return ops.transpose(x, perm=tuple(first[i] for i in second))


@drr("remove_redundant_transpose_pass", benefit=2, keep=True)
class TransposeBack:
    """The second undoes the first."""

    def source(x, *, first, second):
        return ops.transpose(ops.transpose(x, perm=first), perm=second)

    def constraint(first, second):
        return all(first[i] == n for n, i in enumerate(second))

    def result(x):
        return x
