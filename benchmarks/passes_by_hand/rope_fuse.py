"""[a cos - b sin, b cos + a sin] of the halves a, b of x's last dimension."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import op_attrs, tensor_operands
from minipd.ir.value import Value
from minipd.passes.base import PatternRewritePass
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class RotaryPositionEmbedding(RewritePattern):
    roots = ("pd_op.concat",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        parts = tensor_operands(op)
        if len(parts) != 2:
            return False
        bundle = op.operand_source(0).get_defining_op()
        difference, total = only_maker(parts[0], "subtract", bundle), only_maker(parts[1], "add", bundle)
        if difference is None or total is None:
            return False
        left, right = (only_maker(v, "multiply", difference) for v in tensor_operands(difference))
        if left is None or right is None:
            return False
        for first, second in orders(total):
            third, fourth = only_maker(first, "multiply", total), only_maker(second, "multiply", total)
            if third is None or fourth is None:
                continue
            for a, cos in orders(left):
                for b, sin in orders(right):
                    if (b, cos) not in orders(third) or (a, sin) not in orders(fourth):
                        continue
                    products = (left, right, third, fourth)
                    halves = self.halves(a, b, products)
                    if halves is None or not self.fits(op, *halves, cos, sin):
                        continue
                    if not gradients_agree(op, difference, total, *products, *halves):
                        continue
                    x = tensor_operands(halves[0])[0]
                    rewriter.replace_op_with(op, ROWS["fused_rotary_position_embedding"], (x, cos, sin))
                    for each in (difference, total, *products, *halves):
                        rewriter.erase_op(each)
                    return True
        return False

    def halves(self, a: Value, b: Value, users: tuple[Operation, ...]) -> tuple[Operation, Operation] | None:
        """The two slices of one tensor, if there is nothing else that reads them."""
        first, second = only_maker(a, "slice", *users), only_maker(b, "slice", *users)
        if first is None or second is None or tensor_operands(first)[0] is not tensor_operands(second)[0]:
            return None
        return first, second

    def fits(self, op: Operation, first: Operation, second: Operation, cos: Value, sin: Value) -> bool:
        """Whether the slices are the halves of the last dimension, and the angles are repeated only."""
        x = tensor_operands(first)[0]
        low, high, last = op_attrs(first), op_attrs(second), x.ndim - 1
        half, whole = low["ends"], x.shape[-1]
        if low["axes"] != (last,) or high["axes"] != (last,) or op_attrs(op)["axis"] != last:
            return False
        if low["starts"] != (0,) or high["starts"] != half or high["ends"] != (whole,) or half[0] * 2 != whole:
            return False
        if x.ndim < max(cos.ndim, sin.ndim) or not x.dtype == cos.dtype == sin.dtype:
            return False
        return all(s == 1 or s == n for t in (cos, sin)
                   for s, n in zip(reversed(t.shape), reversed((*x.shape[:-1], half[0])), strict=False))


@register_pass("rope_fuse_by_hand_pass")
class RopeFuse(PatternRewritePass):
    patterns = (RotaryPositionEmbedding,)
