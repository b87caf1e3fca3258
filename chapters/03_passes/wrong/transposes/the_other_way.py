# Composes in the other order: right where the two can be swapped.
from minipd.passes.formula import ops


class TransposeOfTranspose:
    def result(x, first, second):
        return ops.transpose(x, perm=tuple(second[i] for i in first))
