"""A number times a product, in its three spellings."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.library.matmul_scale_fuse import lighter, one_is_lighter
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class ScaledProduct(RewritePattern):
    roots = ("pd_op.multiply", "pd_op.divide", "pd_op.scale")

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for product, number in self.spellings(op):
            matmul = only_maker(product, "matmul", op)
            if matmul is None:
                continue
            x, y = tensor_operands(matmul)
            attrs = op_attrs(matmul)
            flags = attrs["transpose_x"], attrs["transpose_y"]
            if not one_is_lighter(x, y, *flags, number) or not gradients_agree(op, matmul):
                continue
            left = lighter(x, y, *flags) is x
            factor = x if left else y
            scaled, = rewriter.call(ROWS["multiply"], (factor, rewriter.full((), number, factor.dtype)), {})
            scaled.stop_gradient = op.result(0).stop_gradient
            rewriter.replace_op_with(op, ROWS["matmul"], (scaled, y) if left else (x, scaled), attrs)
            rewriter.erase_op(matmul)
            return True
        return False

    def spellings(self, op: Operation) -> list:
        """The tensors that `op` multiplies by a number, each with the number."""
        if op.name() == "pd_op.scale":
            attrs = op_attrs(op)
            return [(tensor_operands(op)[0], attrs["scale"])] if attrs["bias"] == 0 else []
        found = []
        for x, other in orders(op) if op.name() == "pd_op.multiply" else [tensor_operands(op)]:
            number = constant_of(other) if other.shape == () else None
            if number is not None and op.name() == "pd_op.multiply":
                found.append((x, number))
            elif number:
                found.append((x, 1 / number))
        return found


@register_pass("matmul_scale_fuse_by_hand_pass")
class MatmulScaleFuse(PatternRewritePass):
    patterns = (ScaledProduct,)
