# x * x is another operator than square: the rule is right, and matches nothing.
from minipd.passes.formula import ops


class RmsNorm:
    def source(x, weight, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(x * x, axis=axis, keepdim=True) + epsilon) * weight
