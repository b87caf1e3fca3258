# The mean drops its axis, which the composed form keeps.
from minipd.passes.formula import ops


class RmsNorm:
    def source(x, weight, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(ops.square(x), axis=axis, keepdim=False) + epsilon) * weight
