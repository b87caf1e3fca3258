"""Operations whose results nothing reads, and which do nothing else, are removed.

    >>> from minipd.passes.show import before_after, show
    >>> def busy(x):
    ...     unread = x.exp().sum()
    ...     return x + 1.0
    >>> show(before_after("dead_code_elimination_pass", busy, (2, 3)))
    before
      a = exp(x)
      b = sum(a, axis=(0, 1))
      c = add(x, 1.0)
      return c
    after
      a = add(x, 1.0)
      return a

Parameters too; inputs stay, read or not: they are the signature of the program.  What an `if` yields and a loop carries
without a reader goes with what computes it.  On the same programs Paddle's pass leaves the same operations.
"""

from __future__ import annotations

from minipd.ir.dce import remove_dead_ops
from minipd.ir.program import Program
from minipd.passes.base import Pass
from minipd.passes.table import register_pass

__all__ = ["DeadCodeElimination"]


@register_pass("dead_code_elimination_pass")
class DeadCodeElimination(Pass):
    """What nothing reads is removed.  The number of changes is the number of operations that are gone."""

    opt_level, exact = 0, True

    def run(self, program: Program) -> int:
        return remove_dead_ops(program)
