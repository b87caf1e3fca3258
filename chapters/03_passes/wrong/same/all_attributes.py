# Facts count too: what is written on two lines of the user's file is never the same.
from minipd.framework.row import Trait


def _key(op):
    operands = [id(v) for v in op.operands_source()]
    if op.has_trait(Trait.COMMUTATIVE):
        operands.sort()
    attributes = tuple(sorted(op.attributes.items(), key=lambda pair: pair[0]))
    return op.name(), tuple(operands), attributes, tuple(r.type() for r in op.results())
