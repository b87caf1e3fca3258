# 2^k is right, and e^r is 1 + r: good for nothing but powers of two.
from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.math import LN2_HIGH, LN2_LOW, LOG2_E, ROUND, ROUND_BITS, F, I
from minipd.cinn.codegen.scalar import int_bits, select


def exponential(times_power):
    @inline
    def exp(x):
        gone = x < F(-104)
        x = select(gone, F(-104), x)
        x = select(x > F(89), F(89), x)
        rounded = x * LOG2_E + ROUND
        k = I(int_bits(rounded) - ROUND_BITS)
        whole = rounded - ROUND
        r = x - whole * LN2_HIGH - whole * LN2_LOW
        return times_power(select(gone, F(0), r + F(1)), k)
    return exp
