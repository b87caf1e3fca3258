# The attributes are left out: sums of one tensor with and without keepdim become one.
from minipd.framework.row import Trait
from minipd.ir.schema import number_of_tensors


def _key(op):
    operands = [id(v) for v in op.operands_source()]
    if op.has_trait(Trait.COMMUTATIVE) and op.row is not None:
        n = number_of_tensors(op, op.row)
        operands[:n] = sorted(operands[:n])
    return op.name(), tuple(operands), tuple(r.type() for r in op.results())
