# What stands for attributes is sorted: the start and the step of a slice get mixed up.
from minipd.passes.library.common_subexpression_elimination import FACTS


def _key(op):
    operands = [id(v) for v in op.operands_source()]
    if op.row is not None:
        n = number_of_tensors(op, op.row)
        if op.has_trait(Trait.COMMUTATIVE):
            operands[:n] = sorted(operands[:n])
        operands[n:] = sorted(operands[n:])
    attributes = tuple(sorted(((k, a) for k, a in op.attributes.items() if k not in FACTS), key=lambda pair: pair[0]))
    return op.name(), tuple(operands), attributes, tuple(r.type() for r in op.results())
