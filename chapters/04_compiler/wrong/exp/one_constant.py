# ln 2 in one constant: for large x, k times its rounding is more than the last place.
from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.math import E0, E1, E2, E3, E4, LOG2_E, ROUND, ROUND_BITS, F, I
from minipd.cinn.codegen.scalar import int_bits, select

LN2 = F(0.69314718)


def exponential(times_power):
    @inline
    def exp(x):
        gone = x < F(-104)
        x = select(gone, F(-104), x)
        x = select(x > F(89), F(89), x)
        rounded = x * LOG2_E + ROUND
        k = I(int_bits(rounded) - ROUND_BITS)
        r = x - (rounded - ROUND) * LN2
        p = (((E4 * r + E3) * r + E2) * r + E1) * r + E0
        return times_power(select(gone, F(0), p * (r * r) + (r + F(1))), k)
    return exp
