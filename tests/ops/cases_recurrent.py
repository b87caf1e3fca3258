"""Cases of the steps of recurrent cells, element by element with `math`."""

import math

import numpy as np

from tests.ops.case import Case, cases


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def by_element(function, n_out):
    """The function of Python floats over arrays, as n_out arrays."""
    def apply(*xs):
        made = np.frompyfunc(function, len(xs), n_out)(*xs)
        return [np.array(part, np.float64) for part in (made if n_out > 1 else [made])]
    return apply


def blocks(x, n):
    return np.split(x, n, -1)


def lstm(i, f, g, o, c):
    i, f, g, o = sigmoid(i), sigmoid(f), math.tanh(g), sigmoid(o)
    new = f * c + i * g
    return o * math.tanh(new), new, i, f, g, o


def lstm_grad(g_out, g_cell, i, f, g, o, c, cell):
    d = g_cell + g_out * o / math.cosh(cell) ** 2
    return (d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g) * (1 + g),
            g_out * math.tanh(cell) * o * (1 - o), d * f)


def gru(xr, xz, xn, ur, uz, un, h):
    r, z = sigmoid(xr + ur), sigmoid(xz + uz)
    n = math.tanh(xn + r * un)
    return z * h + (1 - z) * n, r, z, n


def gru_grad(g, un, h, r, z, n):
    gn = g * (1 - z) * (1 - n) * (1 + n)
    gr, gz = gn * un * r * (1 - r), g * (h - n) * z * (1 - z)
    return gr, gz, gn, gn * r, g * z


SHAPES = ((3,), (2, 2), (0, 2))
#: of the gradients' rows: their second derivatives, the third of a step, take long, and are made of small operators
FIRST_ONLY = {"smooth": False}


def wide(shape, n):
    return (*shape[:-1], n * shape[-1])


@cases("lstm_unit")
def _(d):
    def want(gates, c):
        out, new, *act = by_element(lstm, 6)(*blocks(gates, 4), c)
        return out, new, np.concatenate(act, -1)
    for shape in SHAPES:
        yield Case((d.floats(*wide(shape, 4)), d.floats(*shape)), want,
                   fixed=((0, len(shape) - 1), (1, len(shape) - 1)))


@cases("lstm_unit_grad")
def _(d):
    def want(g_out, g_cell, act, c, cell):
        *gates, g_c = by_element(lstm_grad, 5)(g_out, g_cell, *blocks(act, 4), c, cell)
        return np.concatenate(gates, -1), g_c
    for shape in SHAPES[1:2]:
        yield Case((d.floats(*shape), d.floats(*shape), d.floats(*wide(shape, 4)), d.floats(*shape), d.floats(*shape)),
                   want, fixed=tuple((i, len(shape) - 1) for i in range(5)), **FIRST_ONLY)


@cases("gru_unit")
def _(d):
    def want(x, u, h):
        out, *act = by_element(gru, 4)(*blocks(x, 3), *blocks(u, 3), h)
        return out, np.concatenate(act, -1)
    for shape in SHAPES:
        yield Case((d.floats(*wide(shape, 3)), d.floats(*wide(shape, 3)), d.floats(*shape)), want,
                   fixed=tuple((i, len(shape) - 1) for i in range(3)))


@cases("gru_unit_grad")
def _(d):
    def want(g, u, h, act):
        gr, gz, gn, gun, gh = by_element(gru_grad, 5)(g, blocks(u, 3)[2], h, *blocks(act, 3))
        return np.concatenate([gr, gz, gn], -1), np.concatenate([gr, gz, gun], -1), gh
    for shape in SHAPES[1:2]:
        yield Case((d.floats(*shape), d.floats(*wide(shape, 3)), d.floats(*shape), d.floats(*wide(shape, 3))), want,
                   fixed=tuple((i, len(shape) - 1) for i in range(4)), **FIRST_ONLY)
