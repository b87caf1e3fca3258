"""Cases of activations, normalisation and binary cross entropy: what they compute, said with Python's math."""

import math

import numpy as np

from tests.ops.case import PAIRS, Case, cases, each, unary

FAR = np.array([-1e4, -40.0, -10.0, -1e-3, 0.0, 10.0, 40.0, 1e4])


@cases("logsigmoid")
def _(d):
    def want(x):
        return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))

    yield from unary(want, lambda d: d.floats)(d)
    yield Case((FAR,), each(want), wrt=())


@cases("gelu")
def _(d):
    def want(x, approximate=False):
        if approximate:
            return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2
        return x * math.erfc(-x / math.sqrt(2)) / 2

    for approximate in (False, True):
        for shape in ((), (7,), (3, 1, 2), (0,)):
            yield Case((d.floats(*shape),), lambda x, approximate: each(lambda v: want(v, approximate))(x),
                       {"approximate": approximate})
    yield Case((FAR,), each(want), wrt=())


@cases("sigmoid_cross_entropy_with_logits")
def _(d):
    def want(x, y):
        return y * math.log1p(math.exp(-x)) + (1 - y) * math.log1p(math.exp(x))

    for x, y in PAIRS:
        yield Case((d.floats(*x), d.floats(*y, low=0.0, high=1.0)), each(want))
    yield Case((FAR, np.array([0.0, 1, 1, 0, 1, 0, 1, 1])), lambda x, y: np.array(
        [0, 40, math.log1p(math.exp(10)), math.log1p(math.exp(-1e-3)), math.log(2),
         math.log1p(math.exp(10)), math.log1p(math.exp(-40)), 0]), wrt=())


@cases("bce_loss")
def _(d):
    def want(x, y):
        yes, no = (max(math.log(p), -100.0) if p else -100.0 for p in (x, 1 - x))
        return -(y * yes + (1 - y) * no)

    for x, y in PAIRS:
        yield Case((d.floats(*x, low=0.1, high=0.9), d.floats(*y, low=0.0, high=1.0)), each(want))
    yield Case((np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0])), each(want), wrt=())


@cases("log_softmax")
def _(d):
    def want(x, axis):
        return np.apply_along_axis(lambda row: row - math.log(math.fsum(map(math.exp, row))), axis, x) if x.size else x

    for shape, axis in (((), 0), ((1,), 0), ((5,), 0), ((2, 3), 1), ((3, 1, 4), 0), ((2, 3, 2), 1), ((0, 3), 1),
                        ((3, 0), 1)):
        if shape:
            yield Case((d.floats(*shape),), want, {"axis": axis})
    yield Case((np.array([[1e4, 0.0], [-1e4, -1e4]]),), lambda x, axis: np.array(
        [[0, -1e4], [-math.log(2), -math.log(2)]]), {"axis": 1}, wrt=())
    yield Case((np.array([[0.0, -math.inf]]),), lambda x, axis: x, {"axis": 1}, wrt=())


@cases("standardize")
def _(d):
    def want(x, axis, epsilon=1e-5):
        if not x.size:
            empty = np.full([1 if i in axis else n for i, n in enumerate(x.shape)], np.nan)
            return x, empty, empty
        small = np.moveaxis(x, axis, range(len(axis))).reshape(-1, *(n for i, n in enumerate(x.shape) if i not in axis))
        mean = np.apply_along_axis(lambda v: math.fsum(v) / len(v), 0, small)
        variance = np.apply_along_axis(lambda v: math.fsum(u * u for u in v - math.fsum(v) / len(v)) / len(v), 0, small)
        mean, variance = np.expand_dims(mean, axis), np.expand_dims(variance, axis)
        return (x - mean) / np.sqrt(variance + epsilon), mean, variance

    for shape, axis in (((5,), (0,)), ((2, 3), (1,)), ((4, 3), (0,)), ((2, 3, 4), (1, 2)), ((3, 2, 2), (0, 2)),
                        ((0, 3), (1,)), ((3, 1), (1,))):
        yield Case((d.floats(*shape),), want, {"axis": axis})
    yield Case((d.floats(3, 0),), want, {"axis": (1,)}, wrt=())            # statistics of nothing are NaN
    yield Case((d.floats(3, 4),), want, {"axis": (1,), "epsilon": 0.5})
    yield Case((np.full((2, 3), 7.0),), want, {"axis": (1,)}, wrt=())       # too steep for finite differences
