# h * h is another operator than square: equal on paper, and never found.
from minipd.passes.formula import ops


class RmsNormOfLowPrecision:
    def source(x, weight, *, axis, epsilon, wide, narrow):
        h = ops.cast(x, dtype=wide)
        n = h * ops.rsqrt(ops.mean(h * h, axis=axis, keepdim=True) + epsilon)
        return ops.cast(n, dtype=narrow) * weight
