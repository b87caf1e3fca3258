"""x * rsqrt(mean(x^2) + epsilon) * weight."""

from __future__ import annotations

from minipd.framework.row import ROWS
from minipd.ir.operation import Operation
from minipd.ir.schema import constant_of, op_attrs, tensor_operands
from minipd.ir.value import Value
from minipd.passes.base import PatternRewritePass
from minipd.passes.library.rms_norm_fuse import over_last
from minipd.passes.pattern import PatternRewriter, RewritePattern
from minipd.passes.table import register_pass
from passes_by_hand.helpers import gradients_agree, only_maker, orders


class RmsNorm(RewritePattern):
    roots = ("pd_op.multiply",)

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> bool:
        for normal, weight in orders(op):
            scaled = only_maker(normal, "multiply", op)
            for x, root in orders(scaled) if scaled is not None else ():
                found = self.root_of_mean(x, root, scaled)
                if found is None:
                    continue
                axis, epsilon, inner = found
                if not over_last(x, weight, axis) or x.dtype != weight.dtype:
                    continue
                if not gradients_agree(op, scaled, *inner):
                    continue
                rewriter.replace_op_with(op, ROWS["rms_norm"], (x, weight), {"epsilon": epsilon})
                for each in (scaled, *inner):
                    rewriter.erase_op(each)
                return True
        return False

    def root_of_mean(self, x: Value, root: Value, user: Operation) -> tuple[tuple, float, list[Operation]] | None:
        """Axis, epsilon and the operations of rsqrt(mean(x^2) + epsilon)."""
        rsqrt = only_maker(root, "rsqrt", user)
        if rsqrt is None:
            return None
        shifted = only_maker(tensor_operands(rsqrt)[0], "add", rsqrt)
        for total, number in orders(shifted) if shifted is not None else ():
            epsilon = constant_of(number) if number.shape == () else None
            mean = only_maker(total, "mean", shifted)
            if epsilon is None or mean is None:
                continue
            attrs = op_attrs(mean)
            square = only_maker(tensor_operands(mean)[0], "square", mean)
            if square is None or not attrs["keepdim"] or tensor_operands(square)[0] is not x:
                continue
            return attrs["axis"], epsilon, [rsqrt, shifted, mean, square]
        return None


@register_pass("rms_norm_fuse_by_hand_pass")
class RmsNormFuse(PatternRewritePass):
    patterns = (RmsNorm,)
