# x is multiplied, not what it was cast to.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = x * ops.rsqrt(ops.mean(ops.square(h), axis=axis, keepdim=True) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
