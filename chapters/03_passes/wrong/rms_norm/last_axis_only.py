# The axis is not the match's: every norm must go over axis 1.
from minipd.passes.formula import ops


class RmsNorm:
    def source(x, weight, *, axis, epsilon):
        return x * ops.rsqrt(ops.mean(ops.square(x), axis=(1,), keepdim=True) + epsilon) * weight + 0 * axis
