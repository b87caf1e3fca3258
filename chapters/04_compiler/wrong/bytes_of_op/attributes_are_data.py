# Every operand counts, also the axis of a sum.
from minipd.cinn.dialect import FUSION, JIT_KERNEL
from minipd.cinn.frontend.traffic import repeated, sizes


def bytes_of_op(op):
    if op.name() in (FUSION, JIT_KERNEL):
        return sizes(op.operands_source()) + sizes(op.results())
    row = op.row
    if row is None or row.view:
        return 0
    return sizes(map(repeated, op.operands_source())) + sizes(op.results())
