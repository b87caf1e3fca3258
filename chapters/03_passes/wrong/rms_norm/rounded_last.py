# Rounded after the weight: that is what the fused operator does, not what is composed.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.mean(ops.square(h), axis=axis, keepdim=True) + epsilon)
        return ops.cast(n * weight, dtype=narrow)
