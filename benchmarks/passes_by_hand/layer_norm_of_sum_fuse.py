"""layer_norm(x + y), where nobody else reads the sum."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.library.layer_norm_fuse import alike
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker


class LayerNormOfSum(RewritePattern):
    roots = ("pd_op.layer_norm",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        total, scale, bias = tensor_operands(op)
        add = only_maker(total, "add", op)
        if add is None or not gradients_agree(op, add):
            return False
        x, y = tensor_operands(add)
        if not alike(x, y):
            return False
        attrs = {"epsilon": op_attrs(op)["epsilon"]}
        rewriter.replace_op_with(op, ROWS["skip_layernorm"], (x, y, scale, bias), attrs)
        rewriter.erase_op(add)
        return True


@register_pass("layer_norm_of_sum_fuse_by_hand_pass")
class LayerNormOfSumFuse(PatternRewritePass):
    patterns = (LayerNormOfSum,)
