# Divided by the root: equal on paper, another operator in a program.
from minipd.passes.formula import ops


class RmsNorm:
    def source(x, weight, *, axis, epsilon):
        return x / ops.sqrt(ops.mean(ops.square(x), axis=axis, keepdim=True) + epsilon) * weight
