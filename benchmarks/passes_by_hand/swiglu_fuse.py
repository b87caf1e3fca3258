"""silu(x) * y, of one shape."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class Swiglu(RewritePattern):
    roots = ("pd_op.multiply",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for gate, y in orders(op):
            silu = only_maker(gate, "silu", op)
            if silu is None or gate.shape != y.shape or not gradients_agree(op, silu):
                continue
            rewriter.replace_op_with(op, ROWS["swiglu"], (*tensor_operands(silu), y))
            rewriter.erase_op(silu)
            return True
        return False


@register_pass("swiglu_fuse_by_hand_pass")
class SwigluFuse(PatternRewritePass):
    patterns = (Swiglu,)
