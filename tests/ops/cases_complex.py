"""Cases of the operators on complex numbers, and complex cases of operators on any numbers."""

import cmath
import operator

import numpy as np

from minipd.framework import dtype as dtypes
from tests.ops import cases_index, cases_math, cases_shape  # noqa: F401  (what has cases gets more)
from tests.ops.case import Case, also, cases

SHAPES = [(), (3,), (2, 0), (2, 1, 2)]
PAIRS = [((), ()), ((2, 1), (3,)), ((2,), (2,)), ((0,), (1,)), ((2, 3), ())]


def each(f):
    return np.vectorize(f, otypes=[complex])


def each_real(f):
    return np.vectorize(f, otypes=[float])


def parts(*shapes):
    return lambda d: (d.complexes(*shape) for shape in shapes)


# ------------------------------------------------------------------------------------------------ parts
@cases("real")
def _(d):
    for x in parts(*SHAPES)(d):
        yield Case((x,), each_real(lambda v: v.real))


@cases("imag")
def _(d):
    for x in parts(*SHAPES)(d):
        yield Case((x,), each_real(lambda v: v.imag))


@cases("conj")
def _(d):
    for x in parts(*SHAPES)(d):
        yield Case((x,), each(lambda v: complex(v.real, -v.imag)))


@cases("complex", "wide")
def _(d):
    for a, b in PAIRS:
        yield Case((d.floats(*a), d.floats(*b)), each(complex))


@cases("as_complex", "wide")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape, 2),), lambda x: x[..., 0] + 1j * x[..., 1])


@cases("as_real")
def _(d):
    for x in parts(*SHAPES)(d):
        yield Case((x,), lambda x: np.stack([x.real, x.imag], -1))


@cases("angle")
def _(d):
    for x in parts(*SHAPES)(d):
        yield Case((x,), each_real(cmath.phase))
    yield Case((np.array([-1.5, 0.5, 2.0]),), each_real(cmath.phase), smooth=False)


# ------------------------------------------------------------------------------------------------ one operand
def unary(name, f, shapes=((3,), ())):
    @also(name)
    def _(d):
        for shape in shapes:
            yield Case((d.complexes(*shape),), each(f))


unary("exp", cmath.exp)
unary("log", cmath.log)
unary("sqrt", cmath.sqrt)
unary("rsqrt", lambda x: 1 / cmath.sqrt(x))
unary("tanh", cmath.tanh)
unary("sin", cmath.sin)
unary("cos", cmath.cos)
unary("square", lambda x: x * x)
unary("assign", lambda x: x)


@also("abs")
def _(d):
    yield Case((d.complexes(3),), each_real(abs))


@also("scale")
def _(d):
    yield Case((d.complexes(3),), lambda x, scale, bias: x * scale + bias, {"scale": -1.5, "bias": 2.0})


@also("cast")
def _(d):
    yield Case((d.complexes(3),), lambda x, dtype: x.real, {"dtype": dtypes.float64.np})
    yield Case((d.floats(3),), lambda x, dtype: x + 0j, {"dtype": dtypes.complex128.np})
    yield Case((d.complexes(3),), lambda x, dtype: x, {"dtype": dtypes.complex64.np}, wrt=())


# ------------------------------------------------------------------------------------------------ several operands
def binary(name, f):
    @also(name)
    def _(d):
        for a, b in PAIRS[:3]:
            yield Case((d.complexes(*a), d.complexes(*b)), each(f))
        yield Case((d.complexes(2), 1.5), each(f))


for _name in ("add", "subtract", "multiply"):
    binary(_name, {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}[_name])
binary("divide", operator.truediv)
binary("pow", operator.pow)


@also("pow")
def _(d):
    yield Case((2.0, d.complexes(2)), each(operator.pow))
    yield Case((d.complexes(2), 2.0), each(operator.pow))


@also("equal")
def _(d):
    yield Case((np.array([1 + 1j, 1 - 1j]), np.array([1 + 1j, 1 + 1j])), np.vectorize(operator.eq, otypes=[bool]))


@also("where")
def _(d):
    yield Case((d.bools(2, 3), d.complexes(3), d.complexes(2, 1)), np.vectorize(lambda c, a, b: a if c else b))


@also("add_n")
def _(d):
    yield Case((d.complexes(2), d.complexes(2)), operator.add)


# ------------------------------------------------------------------------------------------------ sums and products
@also("sum")
def _(d):
    yield Case((d.complexes(2, 3),), lambda x, axis: sum(x), {"axis": (0,)})


@also("mean")
def _(d):
    yield Case((d.complexes(2, 3),), lambda x, axis: sum(x) / 2, {"axis": (0,)})


@also("matmul")
def _(d):
    def want(x, y, transpose_x=False, transpose_y=False):
        x, y = x.T if transpose_x else x, y.T if transpose_y else y
        return np.array([[sum(a * b for a, b in zip(row, column, strict=True)) for column in y.T] for row in x])

    yield Case((d.complexes(2, 3), d.complexes(3, 2)), want)
    yield Case((d.complexes(3, 2), d.complexes(2, 3)), want, {"transpose_x": True, "transpose_y": True})


# ------------------------------------------------------------------------------------------------ moves
@also("transpose")
def _(d):
    yield Case((d.complexes(2, 3),), lambda x, perm: np.array([[row[i] for row in x] for i in range(3)]),
               {"perm": (1, 0)})


@also("expand")
def _(d):
    yield Case((d.complexes(2, 1),), lambda x, shape: x + np.zeros(shape), {"shape": (2, 3)},
               lambda s: {"shape": (s(2), s(3))})
