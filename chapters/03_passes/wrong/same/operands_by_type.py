# Operands are compared by their types, not by which value they are.
from minipd.passes.library.common_subexpression_elimination import FACTS


def _key(op):
    operands = tuple(str(v.type()) for v in op.operands_source())
    attributes = tuple(sorted(((k, a) for k, a in op.attributes.items() if k not in FACTS), key=lambda pair: pair[0]))
    return op.name(), operands, attributes
