"""Two transpositions in a row."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree


class TransposeOfTranspose(RewritePattern):
    roots = ("pd_op.transpose",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        inner = tensor_operands(op)[0].get_defining_op()
        if inner is None or inner.name() != "pd_op.transpose" or inner.parent is not op.parent:
            return False
        if not gradients_agree(op, inner):
            return False
        first, second = op_attrs(inner)["perm"], op_attrs(op)["perm"]
        both = tuple(first[i] for i in second)
        x, read_here_alone = tensor_operands(inner)[0], inner.result(0).has_one_use()
        if both == tuple(range(len(both))):
            rewriter.replace_op(op, (x,))
        elif read_here_alone:
            rewriter.replace_op_with(op, ROWS["transpose"], (x,), {"perm": both})
        else:
            return False
        if read_here_alone:
            rewriter.erase_op(inner)
        return True


@register_pass("remove_redundant_transpose_by_hand_pass")
class RemoveRedundantTranspose(PatternRewritePass):
    patterns = (TransposeOfTranspose,)
    exact = True
    opt_level = 1
