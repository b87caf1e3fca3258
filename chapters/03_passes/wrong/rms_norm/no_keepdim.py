# The mean drops its axis, which the composed form keeps.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.mean(ops.square(h), axis=axis, keepdim=False) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
