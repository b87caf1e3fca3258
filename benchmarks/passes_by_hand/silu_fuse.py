"""x * sigmoid(x)."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class Silu(RewritePattern):
    roots = ("pd_op.multiply",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for x, gate in orders(op):
            sigmoid = only_maker(gate, "sigmoid", op)
            if sigmoid is None or tensor_operands(sigmoid)[0] is not x or not gradients_agree(op, sigmoid):
                continue
            rewriter.replace_op_with(op, ROWS["silu"], (x,))
            rewriter.erase_op(sigmoid)
            return True
        return False


@register_pass("silu_fuse_by_hand_pass")
class SiluFuse(PatternRewritePass):
    patterns = (Silu,)
