# x is not cut off: for large and small x, k is no exponent of a float32.
from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.math import E0, E1, E2, E3, E4, LN2_HIGH, LN2_LOW, LOG2_E, ROUND, ROUND_BITS, F, I
from minipd.cinn.codegen.scalar import int_bits


def exponential(times_power):
    @inline
    def exp(x):
        rounded = x * LOG2_E + ROUND
        k = I(int_bits(rounded) - ROUND_BITS)
        whole = rounded - ROUND
        r = x - whole * LN2_HIGH
        r = r - whole * LN2_LOW
        p = (((E4 * r + E3) * r + E2) * r + E1) * r + E0
        return times_power(p * (r * r) + (r + F(1)), k)
    return exp
