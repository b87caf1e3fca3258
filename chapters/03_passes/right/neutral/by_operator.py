# An operator at a time; the operation is replaced in two steps.
import math

from minipd.ir.schema import constant_of


class RemoveNeutral:
    def match_and_rewrite(self, op, rewriter):
        (left, right), result = op.operands_source()[:2], op.result(0)
        keep, number = left, constant_of(right)
        match op.name():
            case "pd_op.multiply" if number != 1:
                keep, number = right, constant_of(left)
            case "pd_op.subtract" if number == 0 and math.copysign(1, number) > 0:
                number = 1
            case "pd_op.subtract":
                return False
        if number != 1 or keep.type() != result.type() or keep.stop_gradient != result.stop_gradient:
            return False
        rewriter.replace_all_uses(result, keep)
        rewriter.erase_op(op)
        return True
