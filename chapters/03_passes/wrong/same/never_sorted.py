# Operands that commute are not sorted: a + b and b + a stay two.
from minipd.passes.library.common_subexpression_elimination import FACTS


def _key(op):
    operands = tuple(id(v) for v in op.operands_source())
    attributes = tuple(sorted(((k, a) for k, a in op.attributes.items() if k not in FACTS), key=lambda pair: pair[0]))
    return op.name(), operands, attributes, tuple(r.type() for r in op.results())
