# Forgets the first.
from minipd.passes.formula import ops


class TransposeOfTranspose:
    def result(x, first, second):
        return ops.transpose(x, perm=second)
