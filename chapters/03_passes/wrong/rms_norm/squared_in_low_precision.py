# The square is taken before the cast, and rounded to 8 bits.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.mean(ops.cast(ops.square(x), dtype=wide), axis=axis, keepdim=True) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
