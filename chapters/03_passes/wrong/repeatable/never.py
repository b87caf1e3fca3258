# Too careful: an operation with an operand is never merged.
def _repeatable(op):
    return op.row is not None and op.num_operands() == 0 and op.name() == "pd_op.full"
