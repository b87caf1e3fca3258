"""Transpositions before and after a product."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.library.matmul_transpose_fuse import swaps_last_two
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker


class TransposedFactor(RewritePattern):
    roots = ("pd_op.matmul",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        operands, attrs = tensor_operands(op), op_attrs(op)
        for i, flag in enumerate(("transpose_x", "transpose_y")):
            transpose = only_maker(operands[i], "transpose", op)
            if transpose is None or operands[0] is operands[1]:
                continue
            if not swaps_last_two(op_attrs(transpose)["perm"]) or not gradients_agree(op, transpose):
                continue
            factors = list(operands)
            factors[i] = tensor_operands(transpose)[0]
            rewriter.replace_op_with(op, ROWS["matmul"], factors, {**attrs, flag: not attrs[flag]})
            rewriter.erase_op(transpose)
            return True
        return False


class TransposedProduct(RewritePattern):
    roots = ("pd_op.transpose",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        matmul = only_maker(tensor_operands(op)[0], "matmul", op)
        if matmul is None or not swaps_last_two(op_attrs(op)["perm"]) or not gradients_agree(op, matmul):
            return False
        x, y = tensor_operands(matmul)
        attrs = op_attrs(matmul)
        swapped = {"transpose_x": not attrs["transpose_y"], "transpose_y": not attrs["transpose_x"]}
        rewriter.replace_op_with(op, ROWS["matmul"], (y, x), swapped)
        rewriter.erase_op(matmul)
        return True


@register_pass("matmul_transpose_fuse_by_hand_pass")
class MatmulTransposeFuse(PatternRewritePass):
    patterns = (TransposedFactor, TransposedProduct)
