# The factors the other way round: products are matched in either order.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        mean = ops.mean(ops.square(h), axis=axis, keepdim=True)
        return weight * ops.cast(ops.rsqrt(epsilon + mean) * h, dtype=narrow)
