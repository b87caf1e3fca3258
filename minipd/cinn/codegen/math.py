"""exp, log, tanh, erf, sin and cos of float32 as branch-free polynomials, which LLVM vectorizes; libm's calls it does
not.

Each is right for every float32: denormals, -inf, inf, and NaN gives NaN.  The comments state the largest error in ulp
(units in the last place of the result), measured against float64 by tests/cinn/test_math.py.  Polynomials for log and
tanh: S. Moshier, Cephes mathematical library, single precision (1989).  float64 uses libm.
"""

from __future__ import annotations

import numpy as np

from minipd.cinn.codegen.inline import inline
from minipd.cinn.codegen.scalar import from_bits, int_bits, select, times_power_of_two
from minipd.framework.numba_setup import config

__all__: list[str] = []

F, I, D = np.float32, np.int32, np.float64

# Adding 1.5 * 2^23 rounds a small float32 to an integer, which then is in the low bits of the sum: cheaper than a
# rounding and a conversion, and defined for NaN too, of which a conversion to int is not.
ROUND = F(1.5 * 2**23)
ROUND_BITS = I(ROUND.view(np.int32))

# ln 2 in two parts, the first with so few bits that its multiples up to 2^14 are exact.
LN2_HIGH, LN2_LOW, LOG2_E = F(0.693359375), F(-2.12194440e-4), F(1.44269504)
# (e^r - 1 - r) / r^2: the largest error of e^r, relative to it, is as small as can be, 3.3e-9 (Lawson's weights).
E4, E3, E2, E1, E0 = map(F, (1.38131424e-3, 8.36941879e-3, 4.16684560e-2, 1.66665152e-1, 4.99999940e-1))


@inline
def _times_two_factors(x, k):
    """x 2^k for k from -150, where the result is denormal, to 128, in two factors: no float32 has these exponents."""
    half = I(k >> I(1))
    first = from_bits(I(I(half + I(127)) << I(23)))
    second = from_bits(I(I(I(k - half) + I(127)) << I(23)))
    return x * first * second


def exponential(times_power):
    """exp, by times_power(x, k) = x 2^k."""
    @inline
    def exp(x):
        """e^x, within 2 ulp: 2^k e^r with |r| <= ln(2)/2.  Below -104 it is 0, above 89 inf."""
        gone = x < F(-104)
        x = select(gone, F(-104), x)                    # NaN passes both
        x = select(x > F(89), F(89), x)
        rounded = x * LOG2_E + ROUND
        k = I(int_bits(rounded) - ROUND_BITS)
        whole = rounded - ROUND
        r = x - whole * LN2_HIGH
        r = r - whole * LN2_LOW
        p = (((E4 * r + E3) * r + E2) * r + E1) * r + E0
        p = p * (r * r) + (r + F(1))
        # 0 is chosen, not computed: processors take a hundred cycles for a result below the normal numbers, and half of
        # the scores of causal attention are -inf.
        return times_power(select(gone, F(0), p), k)
    return exp


#: AVX-512 has an instruction for x 2^k, of any exponent.  With it exp takes three quarters of the time.
WIDE = "+avx512f" in (config.CPU_FEATURES or "").split(",")
exp = exponential(times_power_of_two if WIDE else _times_two_factors)


L8, L7, L6, L5, L4, L3, L2, L1, L0 = map(F, (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
SMALLEST_NORMAL = F(1.17549435e-38)
SQRT_HALF_BITS = I(F(0.70710678).view(np.int32))


@inline
def log(x):
    """ln x, within 2 ulp: x = 2^k m with m from sqrt(1/2) to sqrt(2).  -inf for 0, NaN below."""
    denormal = x < SMALLEST_NORMAL
    scaled = select(denormal, x * F(2**23), x)
    bits = int_bits(scaled)
    exponent = I(I(bits - SQRT_HALF_BITS) >> I(23))
    f = from_bits(I(bits - I(exponent << I(23)))) - F(1)
    k = F(exponent) - select(denormal, F(23), F(0))
    square = f * f
    p = (((((((L8 * f + L7) * f + L6) * f + L5) * f + L4) * f + L3) * f + L2) * f + L1) * f + L0
    y = p * f * square + k * LN2_LOW
    y = y - F(0.5) * square
    y = (f + y) + k * LN2_HIGH
    y = select(x == F(0), F(-np.inf), y)
    y = select(x < F(0), F(np.nan), y)
    y = select(x == F(np.inf), x, y)
    return select(x != x, x, y)


T4, T3, T2, T1, T0 = map(F, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
                             -3.33332819422e-1))


@inline
def tanh(x):
    """Within 2 ulp: a polynomial below 0.625, where 1 - 2 / (e^2x + 1) would cancel, that beyond."""
    a = abs(x)
    z = x * x
    near = ((((T4 * z + T3) * z + T2) * z + T1) * z + T0) * z * x + x
    far = F(1) - F(2) / (exp(a + a) + F(1))
    far = select(x < F(0), -far, far)
    return select(a < F(0.625), near, far)


# e^(x^2) erfc(x) = t q(t) with t = 1 / (1 + x / 2), and erf(x) = x + x p(x^2) up to 1: least squares of the relative
# error in 2000 Chebyshev nodes, which leaves 1.2e-8 and 1e-9 of it.
Q10, Q9, Q8, Q7, Q6, Q5, Q4, Q3, Q2, Q1, Q0 = map(F, (
    0.0431954339, -0.234733596, 0.493694931, -0.454973996, 0.13217704, -0.0592113584, 0.0934624374, 0.175315976,
    0.24688457, 0.282093763, 0.282094806))
P6, P5, P4, P3, P2, P1, P0 = map(F, (7.84725926e-5, -8.00818962e-4, 5.18809911e-3, -2.68536918e-2, 0.112835824,
                                     -0.37612626, 0.12837911))


@inline
def _erfc_right(a):
    """erfc for a >= 0.  The square is rounded, so that the relative error grows with it."""
    t = F(1) / (F(1) + F(0.5) * a)
    q = (((((Q10 * t + Q9) * t + Q8) * t + Q7) * t + Q6) * t + Q5) * t + Q4
    q = (((q * t + Q3) * t + Q2) * t + Q1) * t + Q0
    return exp(-(a * a)) * (t * q)


@inline
def erfc(x):
    """Within 7 ulp up to 2, 12 up to 4, 70 where it leaves the normal numbers (at 9.2)."""
    right = _erfc_right(abs(x))
    return select(x < F(0), F(2) - right, right)


@inline
def erf(x):
    """Within 2 ulp: a polynomial below 1, where 1 - erfc would cancel, that beyond."""
    a = abs(x)
    z = x * x
    near = ((((((P6 * z + P5) * z + P4) * z + P3) * z + P2) * z + P1) * z + P0) * x + x
    far = F(1) - _erfc_right(a)
    far = select(x < F(0), -far, far)
    return select(a < F(1), near, far)


def _quarter_turns():
    """For each exponent field b of a float32, the units of its mantissa, 2^(b - 150), in quarter turns modulo 4: the
    leading 29 bits, whose product with a 24-bit mantissa is exact in float64, and the rest."""
    # 2 / pi to 300 binary places, from pi by Machin's formula in integers.
    places = 320
    arctan = lambda n: sum((-1) ** i * ((1 << places) // ((2 * i + 1) * n ** (2 * i + 1))) for i in range(240))
    two_over_pi = (2 << (2 * places)) // (4 * (4 * arctan(5) - arctan(239)))
    high, low = np.zeros(256), np.zeros(256)
    for b in range(255):
        shift = max(b, 1) - 150
        turns = (two_over_pi << shift if shift >= 0 else two_over_pi) % (4 << places)   # in units of 2^-places
        scale = places if shift >= 0 else places - shift
        drop = max(turns.bit_length() - 29, 0)
        head = turns >> drop << drop
        high[b] = _scaled(head, scale)
        low[b] = _scaled(turns - head, scale)
    return high, low


def _scaled(integer, places):
    """integer / 2^places as float64; the integer may be longer than a float64's exponent allows."""
    surplus = max(integer.bit_length() - 64, 0)
    return float(np.ldexp(float(integer >> surplus), surplus - places))


TURNS_HIGH, TURNS_LOW = _quarter_turns()
HALF_PI = D(np.pi / 2)


@inline
def _turned(x):
    """(n, r): x is n quarter turns and r radians beyond, |r| <= pi / 4, in float64; exact enough for every float32."""
    bits = int_bits(x)
    field = I(I(bits >> I(23)) & I(255))
    mantissa = I(bits & I(0x7FFFFF)) | select(field == I(0), I(0), I(0x800000))
    m = D(mantissa)
    turns = m * TURNS_HIGH[np.uint32(field)]
    whole = np.rint(turns)
    rest = (turns - whole) + m * TURNS_LOW[np.uint32(field)]
    return I(whole), rest * HALF_PI


S5, S4, S3, S2, S1 = -1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6
C6, C5, C4, C3, C2 = 1 / 479001600, -1 / 3628800, 1 / 40320, -1 / 720, 1 / 24


@inline
def _sine(r):
    z = r * r
    return r + r * z * ((((S5 * z + S4) * z + S3) * z + S2) * z + S1)


@inline
def _cosine(r):
    z = r * r
    return 1.0 - 0.5 * z + z * z * ((((C6 * z + C5) * z + C4) * z + C3) * z + C2)


@inline
def sin(x):
    """Within 1 ulp: Taylor's polynomials around the next multiple of a quarter turn.  NaN for inf."""
    n, r = _turned(x)
    y = select(I(n & I(1)) == I(1), _cosine(r), _sine(r))
    y = select((I(n & I(2)) == I(2)) != (x < F(0)), -y, y)
    return select(abs(x) < F(np.inf), F(y), F(np.nan))


@inline
def cos(x):
    """Within 1 ulp, likewise."""
    n, r = _turned(x)
    y = select(I(n & I(1)) == I(1), _sine(r), _cosine(r))
    y = select(I(I(n + I(1)) & I(2)) == I(2), -y, y)
    return select(abs(x) < F(np.inf), F(y), F(np.nan))
