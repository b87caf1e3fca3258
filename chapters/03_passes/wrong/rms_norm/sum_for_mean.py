# A sum, not a mean: what it finds is no norm, and is replaced by one.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.sum(ops.square(h), axis=axis, keepdim=True) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
