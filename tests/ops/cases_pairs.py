"""Cases of operators on pairs: division with remainder, bits, parts of floats, and others."""

import functools
import math
import operator

import numpy as np

from tests.ops import case
from tests.ops.case import CASES, FEW_PAIRS, FEW_SHAPES, Case, cases, each
from tests.ops.cases_math import apart, positive

binary = functools.partial(case.binary, pairs=FEW_PAIRS)
unary = functools.partial(case.unary, shapes=FEW_SHAPES)
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8]


# ------------------------------------------------------------------------------------------------ division
for name, f in (("floor_divide", operator.floordiv), ("remainder", operator.mod)):
    @cases(name)
    def _(d, f=f):
        """Quotients are not near whole numbers: no step is in reach of a finite difference."""
        def signs(*shape):
            return np.where(d.bools(*shape), 1.0, -1.0)

        for a, b in FEW_PAIRS:
            yield Case(((np.rint(d.floats(*a, low=3, high=9)) + 0.3) * signs(*a), signs(*b)), each(f))
        yield Case((d.ints(9, 3) + 0.3, -2), each(f))
        yield Case((7.3, signs(3)), each(f))


for name, f in (("floor_divide", operator.floordiv), ("remainder", operator.mod)):
    for t in INTS:
        x = np.array([7, 7, 8, 0], t) if t is np.uint8 else np.array([7, -7, -8, 0], t)
        y = np.array([[2], [3]], t) if t is np.uint8 else np.array([[2], [-3]], t)
        CASES[name].append(Case((x, y), lambda x, y, f=f: np.vectorize(f)(x, y)))
    CASES[name].append(Case((np.array([7, -7]), -2), lambda x, y, f=f: np.vectorize(f)(x, y)))


for name, f in (("gcd", math.gcd), ("lcm", math.lcm)):
    @cases(name)
    def _(d, f=f):
        for a, b in FEW_PAIRS:
            yield Case((d.ints(50, *a) - 25, d.ints(12, *b)), np.vectorize(f, otypes=[np.int64]))
        for t in INTS:
            yield Case((np.array([0, 4, 6, 9], t), np.array([0, 6, 9, 0], t)), np.vectorize(f, otypes=[np.int64]))


# ------------------------------------------------------------------------------------------------ bits
for name, f in (("bitwise_and", operator.and_), ("bitwise_or", operator.or_), ("bitwise_xor", operator.xor)):
    @cases(name)
    def _(d, f=f):
        for a, b in FEW_PAIRS:
            yield Case((d.ints(99, *a) - 50, d.ints(99, *b) - 50), np.vectorize(f, otypes=[np.int64]))
            yield Case((d.bools(*a), d.bools(*b)), np.vectorize(f, otypes=[bool]))
        for t in INTS:
            yield Case((np.array([0, 5, 99], t), np.array([1, 3, 100], t)), np.vectorize(f, otypes=[np.int64]))


@cases("bitwise_not")
def _(d):
    for shape in FEW_SHAPES:
        yield Case((d.ints(99, *shape) - 50,), lambda x: -x - 1)
        yield Case((d.bools(*shape),), lambda x: x ^ True)
    yield Case((np.array([0, 200], np.uint8),), lambda x: 255 - x)


def shifted(bits, left, signed):
    """One element by Python's ints, which have as many bits as it takes."""
    def f(x, y, is_arithmetic=True):
        y = y if 0 <= y < bits else bits
        x = x if is_arithmetic or not signed else x % 2**bits
        out = x << y if left else x >> y
        return (out + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) if signed else out % 2**bits
    return f


for name in ("bitwise_left_shift", "bitwise_right_shift"):
    @cases(name)
    def _(d, left=name == "bitwise_left_shift"):
        for t in INTS:
            info = np.iinfo(t)
            for arithmetic in (True, False):
                f = shifted(info.bits, left, info.min < 0)
                x = np.array([1, 5, info.max, info.min, 77], t)
                y = np.array([[0], [1], [3], [7], [100]] + ([[-1]] if info.min else []), t)
                yield Case((x, y), lambda x, y, is_arithmetic, f=f: np.vectorize(f, otypes=[np.int64])(
                    x, y, is_arithmetic), {"is_arithmetic": arithmetic})
        for a, b in FEW_PAIRS:
            yield Case((d.ints(9, *a), d.ints(5, *b)), np.vectorize(shifted(64, left, True), otypes=[np.int64]))


# ------------------------------------------------------------------------------------------------ extremes, geometry
cases("fmax", "ints")(binary(max, apart, scalars=(0.07, 1.2), smooth=False))
cases("fmin", "ints")(binary(min, apart, scalars=(0.07, 1.2), smooth=False))
cases("atan2")(binary(math.atan2, positive))
cases("hypot")(binary(math.hypot, positive))
cases("logaddexp")(binary(lambda x, y: math.log(math.exp(x) + math.exp(y)), lambda d: d.floats))
nan = float("nan")
for name in ("fmax", "fmin"):
    CASES[name].append(Case((np.array([1.0, nan, nan]), np.array([nan, 2.0, nan])),
                            lambda x, y: np.array([1.0, 2.0, nan]), wrt=()))
CASES["logaddexp"].append(Case((np.array([1000.0, -np.inf]), np.array([1000.0, 0.0])),
                               lambda x, y: np.array([1000.0 + math.log(2), 0.0]), wrt=()))


# ------------------------------------------------------------------------------------------------ parts of floats
cases("copysign")(binary(math.copysign, lambda d: d.distinct, scalars=(0.7, -2)))
CASES["copysign"].append(Case((np.array([1.0, -2.0]), np.array([-0.0, 0.0])), each(math.copysign), wrt=()))


def next_float32(x, y):
    """By the bits: floats of one sign are ordered as their bits are."""
    x, y = np.broadcast_arrays(x.astype(np.float32), y.astype(np.float32))
    bits = x.copy().view(np.int32)
    return (bits + np.where((y > x) == (x > 0), 1, -1).astype(np.int32)).view(np.float32).astype(np.float64)


@cases("nextafter")
def _(d):
    for x, y in FEW_PAIRS:
        yield Case((d.floats(*x).astype(np.float32), d.floats(*y).astype(np.float32)), next_float32)


@cases("frexp", "floats")
def _(d):
    def want(x):
        pairs = [math.frexp(v) for v in x.flat]
        return tuple(np.array([pair[i] for pair in pairs], np.float64).reshape(x.shape) for i in (0, 1))

    for shape in FEW_SHAPES:
        yield Case((d.distinct(*shape) * 1.1,), want)


@cases("signbit", "ints")
def _(d):
    yield from unary(lambda x: x < 0, lambda d: d.distinct)(d)
    yield Case((np.array([-0.0, 0.0, -np.inf, np.inf]),), lambda x: np.copysign(1.0, x) < 0)


CASES["signbit"] = [Case(case.inputs, lambda x, want=case.want: np.asarray(want(x), bool)) for case in CASES["signbit"]]


@cases("logical_xor", "any")
def _(d):
    for a, b in FEW_PAIRS:
        yield Case((d.bools(*a).astype(float), np.asarray(d.bools(*b) * 0.5)),
                   np.vectorize(lambda x, y: bool(x) != bool(y), otypes=[bool]))


for name, f in (("isnan", math.isnan), ("isinf", math.isinf)):
    @cases(name, "any")
    def _(d, f=f):
        for shape in FEW_SHAPES:
            yield Case((d.floats(*shape),), np.vectorize(f, otypes=[bool]))
        yield Case((np.array([np.inf, -np.inf, np.nan, 0.0]),), np.vectorize(f, otypes=[bool]))


def sorted_middle(x, low, high):
    return np.array([sorted((low, v, high))[1] for v in x.flat]).reshape(x.shape)


@cases("clip", "ints")
def _(d):
    def want(x, min, max):
        return sorted_middle(x, min, max)

    for shape in FEW_SHAPES:
        yield Case((d.distinct(*shape),), want, {"min": 0, "max": 1}, smooth=False)
    yield Case((d.distinct(5),), want, {"min": 1, "max": 100}, smooth=False)
    yield Case((np.array([-np.inf, np.inf, 3.0]),), want, {"min": 1, "max": 2}, wrt=())
