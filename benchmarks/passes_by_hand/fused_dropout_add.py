"""dropout(x) + y."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class DropoutAdd(RewritePattern):
    roots = ("pd_op.add",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for dropped, y in orders(op):
            dropout = only_maker(dropped, "dropout", op)
            if dropout is None or not gradients_agree(op, dropout):
                continue
            x, key = tensor_operands(dropout)
            if x.shape != y.shape or x.dtype != y.dtype:
                continue
            attrs = op_attrs(dropout)
            rewriter.replace_op_with(op, ROWS["fused_dropout_add"], (x, y, key), {
                "p": attrs["p"], "mode": attrs["mode"]})
            rewriter.erase_op(dropout)
            return True
        return False


@register_pass("fused_dropout_add_by_hand_pass")
class FusedDropoutAdd(PatternRewritePass):
    patterns = (DropoutAdd,)
