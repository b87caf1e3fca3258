"""x y + bias."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class ProductWithBias(RewritePattern):
    roots = ("pd_op.add",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for product, bias in orders(op):
            matmul = only_maker(product, "matmul", op)
            if matmul is None or not gradients_agree(op, matmul):
                continue
            if bias.dtype != product.dtype or not 1 <= bias.ndim <= product.ndim:
                continue
            if bias.shape[-1] != product.shape[-1] or any(d != 1 for d in bias.shape[:-1]):
                continue
            attrs = op_attrs(matmul)
            if bias.ndim > 1:
                stop = bias.stop_gradient
                bias, = rewriter.call(ROWS["reshape"], (bias,), {"shape": bias.shape[-1:]})
                bias.stop_gradient = stop
            rewriter.replace_op_with(op, ROWS["fused_gemm_epilogue"], (*tensor_operands(matmul), bias), {
                "trans_x": attrs["transpose_x"], "trans_y": attrs["transpose_y"]})
            rewriter.erase_op(matmul)
            return True
        return False


@register_pass("fused_gemm_epilogue_by_hand_pass")
class FusedGemmEpilogue(PatternRewritePass):
    patterns = (ProductWithBias,)
