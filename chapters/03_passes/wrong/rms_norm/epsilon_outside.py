# Epsilon is added to the root, not under it.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * (ops.rsqrt(ops.mean(ops.square(h), axis=axis, keepdim=True)) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
