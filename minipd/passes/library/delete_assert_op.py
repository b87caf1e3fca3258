"""Checks of values are removed: a model that is served has been tested.

    >>> from minipd.passes import create_pass
    >>> from minipd.passes.show import brief, program_of
    >>> from minipd.static.effects import Assert
    >>> program = program_of(lambda x: (Assert((x > 0.0).all()), x + 1.0)[1], (2, 3))
    >>> create_pass("delete_assert_op_pass").run(program)
    1
    >>> print(brief(program))
    a = greater_than(x, 0.0)
    b = all(a, axis=(0, 1))
    c = add(x, 1.0)
    return c

As Paddle's pass of this name: what computes the condition stays, for `dead_code_elimination_pass`.  Not part of any
pipeline: a program that stops where it should not go on computes something else without its checks.
"""

from __future__ import annotations

from minipd.ir.operation import Operation
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass

__all__ = ["DeleteAssertOp"]


class Assertion(RewritePattern):
    """Nobody reads a result of it: it has none."""

    roots = ("pd_op.assert",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        rewriter.erase_op(op)
        return True


@register_pass("delete_assert_op_pass")
class DeleteAssertOp(PatternRewritePass):
    """Checks of values are removed."""

    exact = True
    patterns = (Assertion,)
