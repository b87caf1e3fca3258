# min and max by comparisons the other way round: a NaN becomes a number.
from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.math import E0, E1, E2, E3, E4, LN2_HIGH, LN2_LOW, LOG2_E, ROUND, ROUND_BITS, F, I
from minipd.cinn.codegen.scalar import int_bits, select


def exponential(times_power):
    @inline
    def exp(x):
        x = select(x >= F(-104), x, F(-104))
        gone = x <= F(-104)
        x = select(x <= F(89), x, F(89))
        rounded = x * LOG2_E + ROUND
        k = I(int_bits(rounded) - ROUND_BITS)
        whole = rounded - ROUND
        r = x - whole * LN2_HIGH
        r = r - whole * LN2_LOW
        p = (((E4 * r + E3) * r + E2) * r + E1) * r + E0
        return times_power(select(gone, F(0), p * (r * r) + (r + F(1))), k)
    return exp
