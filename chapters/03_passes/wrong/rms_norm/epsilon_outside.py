# Epsilon is added to the root, not under it.
from minipd.passes.formula import ops


class RmsNorm:
    def source(x, weight, *, axis, epsilon):
        return x * (ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=True)) + epsilon) * weight
