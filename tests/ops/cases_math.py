"""Cases of element-wise operators, comparisons and activations."""

import math
import operator

import numpy as np

from minipd.framework import dtype as dtypes
from tests.ops.case import CASES, PAIRS, SHAPES, Case, Data, binary, cases, each, unary


def floats(d: Data):
    return d.floats


def positive(d: Data):
    return d.positive


def distinct(d: Data):
    return d.distinct


def apart(d: Data):
    """Two operands that are nowhere equal or near: multiples of 1/4 shifted by a third of that, in turn."""
    calls = iter(range(10**6))
    return lambda *shape: np.asarray(d.distinct(*shape) + (next(calls) % 2) / 12)


cases("add", "ints")(binary(operator.add, floats))
cases("subtract", "ints")(binary(operator.sub, floats))
cases("multiply", "ints")(binary(operator.mul, floats))
cases("divide")(binary(operator.truediv, positive))
cases("maximum", "ints")(binary(max, apart, scalars=(0.07, 1.2), smooth=False))
cases("minimum", "ints")(binary(min, apart, scalars=(0.07, 1.2), smooth=False))


@cases("pow")
def _(d):
    yield from binary(operator.pow, positive)(d)
    for exponent in (2.0, 3.0, 1.0, 0.0, 2, 0):            # of any sign, and of 0
        yield Case((np.array([-1.5, 0.0, 2.0]), exponent), each(operator.pow), smooth=exponent in (2.0, 3.0, 2))
    exponents = np.array([2.0, 3.0, 2.0])
    yield Case((np.array([-1.5, 0.0, 2.0]), exponents), each(operator.pow), wrt=(0,))


@cases("where", "any")
def _(d):
    def want(condition, x, y):
        return each(lambda c, a, b: a if c else b)(condition, x, y)

    for a, b in PAIRS:
        yield Case((d.bools(*a), d.floats(*a), d.floats(*b)), want)
        yield Case((d.bools(*b), d.floats(*a), d.floats(*a)), want)
    yield Case((d.bools(2, 3), d.floats(3), 0.5), want)
    yield Case((d.bools(2, 3), 0.5, d.floats(2, 1)), want)


@cases("add_n", "ints")
def _(d):
    def want(*xs):
        return sum(xs[1:], start=xs[0].copy())

    for shape in SHAPES:
        for n in (1, 2, 4):
            yield Case(tuple(d.floats(*shape) for _ in range(n)), want)


@cases("scale", "ints")
def _(d):
    def want(x, scale, bias=0.0, bias_after_scale=True):
        return each(lambda a: a * scale + bias if bias_after_scale else (a + bias) * scale)(x)

    for shape in SHAPES:
        yield Case((d.floats(*shape),), want, {"scale": -2})
    yield Case((d.floats(2, 3),), want, {"scale": 3, "bias": 2})
    yield Case((d.floats(2, 3),), want, {"scale": 3, "bias": 2, "bias_after_scale": False})
    yield Case((d.floats(2, 3),), want, {"scale": 3, "bias_after_scale": False})


cases("exp")(unary(math.exp, floats))
cases("log")(unary(math.log, positive))
cases("sqrt")(unary(math.sqrt, positive))
cases("rsqrt")(unary(lambda x: x**-0.5, positive))
cases("square", "ints")(unary(lambda x: x * x, floats))
cases("abs", "ints")(unary(abs, distinct, smooth=False))
cases("tanh")(unary(math.tanh, floats))
cases("sin")(unary(math.sin, floats))
cases("cos")(unary(math.cos, floats))


def converted(x, dtype):
    return np.array([dtype.type(v) for v in x.flat], dtype).reshape(x.shape)


@cases("cast", "any")
def _(d):
    """float32 and float64 are nested: casting up, then differentiating, is exact enough to check."""
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda x, dtype: x.astype(dtype), {"dtype": np.dtype("float64")})
    for t in dtypes.ALL:
        # A truth value is "not 0"; an int cuts off the fraction.  (Signs stay: unsigned ints have none.)
        yield Case((d.positive(2, 3),), converted, {"dtype": t.np}, wrt=())


# ------------------------------------------------------------------------------------------------ logic
for name, f in {"equal": operator.eq, "not_equal": operator.ne, "less_than": operator.lt, "less_equal": operator.le,
                "greater_than": operator.gt, "greater_equal": operator.ge}.items():
    @cases(name, "any")
    def _(d, f=f):
        def want(x, y):
            return np.vectorize(f, otypes=[bool])(x, y)

        for a, b in PAIRS:
            yield Case((np.rint(d.distinct(*a)), np.rint(d.distinct(*b))), want)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
        yield Case((special[:, None], special), want)
        yield Case((special, 0.0), want)
        yield Case((1.0, special), want)

for name, f in {"logical_and": lambda x, y: bool(x) and bool(y), "logical_or": lambda x, y: bool(x) or bool(y)}.items():
    @cases(name, "any")
    def _(d, f=f):
        for a, b in PAIRS:
            yield Case((d.bools(*a).astype(float), np.asarray(d.bools(*b) * 0.5)),
                       lambda x, y: np.vectorize(f, otypes=[bool])(x, y))


@cases("logical_not", "any")
def _(d):
    for shape in SHAPES:
        yield Case((np.asarray(d.bools(*shape) * 0.5),), np.vectorize(lambda x: not x, otypes=[bool]))


@cases("isfinite", "any")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), np.vectorize(math.isfinite, otypes=[bool]))
    yield Case((np.array([np.inf, -np.inf, np.nan, 0.0]),), np.vectorize(math.isfinite, otypes=[bool]))


# ------------------------------------------------------------------------------------------------ activations
def sigmoid(x):
    return (1 + math.tanh(x / 2)) / 2


cases("relu", "ints")(unary(lambda x: max(x, 0.0), distinct, smooth=False))
cases("sigmoid")(unary(sigmoid, floats))
cases("silu")(unary(lambda x: x * sigmoid(x), floats))
CASES["sigmoid"].append(Case((np.array([-800.0, 800.0, -60.0, 0.0]),), each(sigmoid), wrt=()))


@cases("swiglu")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape), d.floats(*shape)), each(lambda x, y: x * sigmoid(x) * y))


@cases("softmax")
def _(d):
    def want(x, axis):
        def row(v):
            total = math.fsum(math.exp(u - max(v)) for u in v)
            return np.array([math.exp(u - max(v)) / total for u in v])
        return np.apply_along_axis(row, axis, x) if x.size else x

    for shape, axis in (((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 4), 1), ((3, 1), 1), ((0, 3), 1), ((3, 0), 1)):
        yield Case((d.floats(*shape),), want, {"axis": axis})
    yield Case((np.array([[1e4, 1e4 - 1, -np.inf], [-1e4, -1e4, -np.inf]]),), want, {"axis": 1}, wrt=())
