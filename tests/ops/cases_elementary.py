"""Cases of elementary and special functions, and of rounding."""

import functools
import math

import numpy as np

from tests.ops import case
from tests.ops.case import CASES, FEW_SHAPES, Case, also, cases, each

unary = functools.partial(case.unary, shapes=FEW_SHAPES)


def floats(d):
    return d.floats


def positive(d):
    return d.positive


def fractions(d):
    """In (-0.9, 0.9)."""
    return lambda *shape: d.floats(*shape, low=-0.9, high=0.9)


def above_one(d):
    return lambda *shape: d.floats(*shape, low=1.2, high=3.0)


# ------------------------------------------------------------------------------------------------ elementary
cases("expm1")(unary(math.expm1, floats))
cases("log1p")(unary(math.log1p, positive))
cases("log2")(unary(math.log2, positive))
cases("log10")(unary(math.log10, positive))
cases("reciprocal")(unary(lambda x: 1 / x, positive))
cases("sinh")(unary(math.sinh, floats))
cases("cosh")(unary(math.cosh, floats))
cases("asinh")(unary(math.asinh, floats))
cases("acosh")(unary(math.acosh, above_one))
cases("atanh")(unary(math.atanh, fractions))
cases("tan")(unary(math.tan, lambda d: lambda *shape: d.floats(*shape, low=-1.2, high=1.2)))
cases("asin")(unary(math.asin, fractions))
cases("acos")(unary(math.acos, fractions))
cases("atan")(unary(math.atan, floats))


@also("expm1")
def _(d):
    yield Case((np.array([1e-12, -1e-12]),), each(math.expm1), wrt=())


@also("log1p")
def _(d):
    yield Case((np.array([1e-12, -1e-12]),), each(math.log1p), wrt=())


# ------------------------------------------------------------------------------------------------ rounding
def halves(d):
    """Nowhere near a whole number, so that no step is in reach of a finite difference."""
    return lambda *shape: np.asarray(np.rint(d.floats(*shape) * 3) + d.floats(*shape, low=0.2, high=0.4))


cases("floor", "ints")(unary(math.floor, halves, smooth=False))
cases("ceil", "ints")(unary(math.ceil, halves, smooth=False))
cases("trunc", "ints")(unary(math.trunc, halves, smooth=False))
cases("sign", "ints")(unary(lambda x: (x > 0) - (x < 0), lambda d: d.distinct, smooth=False))


@cases("round", "ints")
def _(d):
    def want(x, decimals=0):
        return each(lambda v: round(v, decimals) if x.dtype.kind == "f" else v)(x)

    for shape in ((), (3,), (2, 3), (0,)):
        yield Case((halves(d)(*shape),), want, smooth=False)
    yield Case((np.array([0.5, 1.5, 2.5, -0.5, -1.5]),), want, wrt=())
    yield Case((np.array([0.125, 3.375, -2.625]),), lambda x, decimals: want(x, 2), {"decimals": 2}, wrt=())
    yield Case((np.array([12.0, 18.0, -26.0]),), want, {"decimals": -1}, wrt=())


# ------------------------------------------------------------------------------------------------ special functions
def harmonic(x):
    """digamma by its recurrence up to x + 99, and its expansion there."""
    y = x + 99
    tail = -1 / (2 * y), -1 / (12 * y**2), 1 / (120 * y**4), -1 / (252 * y**6)
    return math.fsum([math.log(y), *tail, *(-1 / (x + k) for k in range(99))])


def of_order(n):
    """The n-th derivative of digamma, n! (-1)^(n+1) sum 1 / (x + k)^(n+1), by Euler and Maclaurin."""
    def f(x):
        p, y = n + 1, x + 300
        tail = y ** (1 - p) / (p - 1), y**-p / 2, p * y ** (-p - 1) / 12, -p * (p + 1) * (p + 2) * y ** (-p - 3) / 720
        return (-1) ** (n + 1) * math.factorial(n) * math.fsum([*tail, *((x + k) ** -p for k in range(300))])
    return f


def bessel(order):
    """I_n(x) = sum (x/2)^(2k+n) / (k! (k+n)!)"""
    return lambda x: math.fsum((x / 2) ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order))
                               for k in range(40))


def inverse_erf(x):
    low, high = -6.0, 6.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle) < x else (low, middle)
    return (low + high) / 2


def off_zero(d):
    return lambda *shape: d.floats(*shape, low=0.3, high=2.0) * np.where(d.bools(*shape), 1, -1)


def off_zeros(d):
    """Away from 1 and 2, where lgamma is 0, and from 1.46, where digamma is."""
    return lambda *shape: d.floats(*shape, low=2.6, high=4.5)


cases("erf")(unary(math.erf, floats))
cases("erfinv")(unary(inverse_erf, fractions))
cases("lgamma")(unary(math.lgamma, off_zeros))
cases("digamma")(unary(harmonic, off_zeros))
cases("i0")(unary(bessel(0), off_zero))
cases("i1")(unary(bessel(1), off_zero))
cases("i0e")(unary(lambda x: math.exp(-abs(x)) * bessel(0)(x), off_zero))
cases("i1e")(unary(lambda x: math.exp(-abs(x)) * bessel(1)(x), off_zero))
CASES["i1"].append(Case((np.array([0.0]),), each(bessel(1)), smooth=False))


@cases("polygamma")
def _(d):
    for shape, n in (((), 1), ((2, 3), 1), ((4,), 2), ((0,), 1), ((3,), 3)):
        yield Case((d.positive(*shape),), lambda x, n: each(of_order(n))(x), {"n": n})


def gamma_part(x, y, upper):
    from scipy import integrate  # late: it loads much, and few tests come here
    lower, _ = integrate.quad(lambda t: t ** (x - 1) * math.exp(-t), 0, y, epsabs=1e-14, epsrel=1e-14)
    return 1 - lower / math.gamma(x) if upper else lower / math.gamma(x)


for name, upper in (("gammainc", False), ("gammaincc", True)):
    @cases(name)
    def _(d, upper=upper):
        want = each(lambda x, y: gamma_part(x, y, upper))
        for a, b in (((), ()), ((3,), (3,)), ((2, 1), (3,)), ((0,), (1,))):
            x = d.floats(*a, low=1.2, high=3.0)
            yield Case((x, d.positive(*b)), want, wrt=(1,))
        yield Case((2.5, d.positive(3)), want, wrt=(1,))
