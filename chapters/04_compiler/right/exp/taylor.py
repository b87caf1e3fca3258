# Taylor's coefficients up to r^7, and the rounding by floor.
from math import factorial

import numpy as np

from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.math import LN2_HIGH, LN2_LOW, LOG2_E, F, I
from minipd.cinn.codegen.scalar import select

A7, A6, A5, A4, A3, A2 = (F(1 / factorial(n)) for n in (7, 6, 5, 4, 3, 2))


def exponential(times_power):
    @inline
    def exp(x):
        nan = x != x
        x = select(nan, F(0), x)
        gone = x < F(-104)
        x = select(gone, F(-104), x)
        x = select(x > F(89), F(89), x)
        whole = F(np.floor(x * LOG2_E + F(0.5)))
        r = x - whole * LN2_HIGH
        r = r - whole * LN2_LOW
        p = ((((A7 * r + A6) * r + A5) * r + A4) * r + A3) * r + A2
        p = p * (r * r) + (r + F(1))
        return select(nan, F(np.nan), times_power(select(gone, F(0), p), I(whole)))
    return exp
