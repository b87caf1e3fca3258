"""Cases of ordering and choosing along an axis, and of searching in what is sorted."""

import math

import numpy as np

from tests.ops.case import Case, cases

SHAPES = [((5,), 0), ((2, 3), 1), ((3, 2), 0), ((2, 3, 2), 1), ((1,), 0), ((0, 3), 1)]


def along(f):
    """f of a list, (value, number) pairs -> an answer for each 1-D slice."""
    def want(x, axis, **attrs):
        lines = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        answers = [f(list(line), **attrs) for line in lines]
        size = len(answers[0]) if answers else attrs.get("k", 1 if f in (kth, frequent) else x.shape[axis])
        shape = (*np.moveaxis(x, axis, -1).shape[:-1], 1 if f is kth else size)
        out = np.array([[v for v, _ in a] for a in answers]).reshape(shape)
        numbers = np.array([[i for _, i in a] for a in answers], int).reshape(shape)
        return np.moveaxis(out, -1, axis), np.moveaxis(numbers, -1, axis)
    return want


def in_order(line, descending=False):
    sign = -1 if descending else 1
    return sorted(((v, i) for i, v in enumerate(line)), key=lambda pair: sign * (
        math.inf if math.isnan(pair[0]) else float(pair[0])))


def first(line, k, largest=True):
    return in_order(line, largest)[:k]


def kth(line, k):
    return [in_order(line)[k - 1]]


def frequent(line):
    value = min(line, key=lambda v: (-line.count(v), v))
    return [(value, len(line) - 1 - line[::-1].index(value))]


EQUAL = np.array([[2.0, 1.0, 2.0, 1.0, 3.0, 1.0], [1.0, 1.0, 0.0, 0.0, 2.0, 2.0]])
NAN = np.array([1.0, np.nan, -np.inf, np.nan, 0.5])


@cases("argsort", "any")
def _(d):
    for shape, axis in SHAPES:
        for descending in (False, True):
            yield Case((d.distinct(*shape),), along(in_order), {"axis": axis, "descending": descending})
    for descending in (False, True):
        yield Case((EQUAL,), along(in_order), {"axis": 1, "descending": descending}, wrt=())
        yield Case((NAN,), along(in_order), {"axis": 0, "descending": descending}, wrt=())


@cases("topk", "any")
def _(d):
    for shape, axis in SHAPES:
        for k in sorted({1, shape[axis]}):
            for largest in (False, True):
                yield Case((d.distinct(*shape),), along(first), {"k": k, "axis": axis, "largest": largest},
                           fixed=((0, axis),))
    yield Case((EQUAL,), along(first), {"k": 3, "axis": 1}, wrt=(), fixed=((0, 1),))
    yield Case((NAN,), along(first), {"k": 3, "axis": 0}, wrt=(), fixed=((0, 0),))


@cases("kthvalue", "any")
def _(d):
    for shape, axis in SHAPES:
        for k in sorted({1, shape[axis]}):
            yield Case((d.distinct(*shape),), along(kth), {"k": k, "axis": axis}, fixed=((0, axis),))
    yield Case((EQUAL,), along(kth), {"k": 2, "axis": 1}, wrt=(), fixed=((0, 1),))


@cases("mode", "any")
def _(d):
    for shape, axis in SHAPES:
        yield Case((d.distinct(*shape),), along(frequent), {"axis": axis}, fixed=((0, axis),))
    yield Case((EQUAL,), along(frequent), {"axis": 1}, wrt=(), fixed=((0, 1),))
    yield Case((EQUAL,), along(frequent), {"axis": 0}, wrt=(), fixed=((0, 0),))


@cases("searchsorted", "ints")
def _(d):
    def want(sequence, values, right=False, out_int32=False):
        lines = np.broadcast_to(sequence, (*values.shape[:-1], sequence.shape[-1])) if sequence.ndim > 1 else None
        out = np.zeros(values.shape, int)
        for at in np.ndindex(values.shape):
            line = sequence if lines is None else lines[at[:-1]]
            out[at] = len(line) if values[at] != values[at] else sum(
                v <= values[at] if right else v < values[at] for v in line)
        return out

    for right in (False, True):
        for shape in ((), (4,), (2, 3), (0,)):
            yield Case((np.sort(d.ints(9, 6)) / 2.0, d.ints(10, *shape) / 2.0), want, {"right": right})
        for lead, n, m in (((2,), 5, 3), ((2, 2), 4, 1), ((0,), 3, 2), ((2,), 1, 0)):
            yield Case((np.sort(d.ints(9, *lead, n)) / 2.0, d.ints(10, *lead, m) / 2.0), want, {"right": right})
    yield Case((np.array([1.0, 2.0]), np.array([np.nan, np.inf, -np.inf])), want, {"out_int32": True})
    yield Case((np.array([[1.0, 2.0, np.nan]]), np.array([[np.nan, 1.5, 3.0]])), want)
