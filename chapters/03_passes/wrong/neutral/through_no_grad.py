# Lets a gradient through where it was stopped.
from minipd.framework.row import Trait
from minipd.ir.schema import constant_of, tensor_operands


class RemoveNeutral:
    def match_and_rewrite(self, op, rewriter):
        x, y = tensor_operands(op)
        result, row = op.result(0), op.row
        for kept, number in ((x, y), (y, x)) if Trait.COMMUTATIVE in row.traits else ((x, y),):
            if all((
                    number.ndim == 0,
                    constant_of(number) == NEUTRAL[row.name],
                    kept.type() == result.type(),
                    not _is_negative_zero(constant_of(number)),
            )):
                rewriter.replace_op(op, [kept])
                return True
        return False
