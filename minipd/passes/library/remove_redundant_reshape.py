"""Reshapes in a row (`reshape`, `squeeze`, `unsqueeze`) become one, or none if they lead back.

    >>> from minipd.passes.show import before_after, show
    >>> def there_and_on(x):
    ...     return x.reshape([3, 4]).flatten().reshape([2, 2, 3])
    >>> show(before_after("remove_redundant_reshape_pass", there_and_on, (2, 6)))
    before
      a = reshape(x, shape=(3, 4))
      b = reshape(a, shape=(12,))
      c = reshape(b, shape=(2, 2, 3))
      return c
    after
      a = reshape(x, shape=(2, 2, 3))
      return a

They all keep the elements in row-major order, so that only the last shape counts; what else reads one of the others is
no hindrance.  (Paddle has no such pass.)
"""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass

__all__ = ["RemoveRedundantReshape"]

RESHAPES = ("pd_op.reshape", "pd_op.squeeze", "pd_op.unsqueeze")


class ReshapeOfReshape(RewritePattern):
    """The last of them reads what the first one reads."""

    roots = RESHAPES

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        first = tensor_operands(op)[0].get_defining_op()
        if first is None or first.name() not in RESHAPES or first.parent is not op.parent:
            return False
        x, result = tensor_operands(first)[0], op.result(0)
        if len({x.stop_gradient, first.result(0).stop_gradient, result.stop_gradient}) > 1:
            return False                    # a gradient is stopped on the way
        if x.type() == result.type():
            rewriter.replace_op(op, [x])
        else:
            rewriter.replace_op_with(op, ROWS["reshape"], (x,), {"shape": result.shape})
        if first.result(0).use_empty():
            rewriter.erase_op(first)
        return True


@register_pass("remove_redundant_reshape_pass")
class RemoveRedundantReshape(PatternRewritePass):
    """Of reshapes in a row, only the last one remains."""

    exact = True
    opt_level = 1
    patterns = (ReshapeOfReshape,)
