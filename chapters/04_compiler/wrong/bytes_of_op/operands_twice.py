# What occurs twice is read twice.
from minipd.cinn.dialect import FUSION, JIT_KERNEL
from minipd.cinn.frontend.traffic import repeated, sizes
from minipd.ir.schema import is_attribute_only, result_values, tensor_operands
from minipd.ir.traits import IrTrait


def bytes_of_op(op):
    if op.name() in (FUSION, JIT_KERNEL):
        return sizes(op.operands_source()) + sizes(op.results())
    row = op.row
    if row is None or row.view or IrTrait.CONSTANT in op.info.traits and is_attribute_only(op):
        return 0
    read = (v for i, v in enumerate(tensor_operands(op)) if i not in row.shape_only)
    return sum(sizes([repeated(v)]) for v in read) + sizes(result_values(op))
