"""Cases of running reductions, and of reductions beyond sums and extremes."""

import itertools
import math

import numpy as np

from tests.ops.case import Case, cases

#: shape, axes
AXES = [((), ()), ((3,), (0,)), ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 2, 3), (0, 2)), ((0, 3), (1,)),
        ((1, 3), (0,))]
#: shape, axis
AXIS = [((1,), 0), ((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 2), 1), ((0, 3), 1), ((3, 0), 1)]


def running(f, start):
    """Python's accumulate, row by row, in either direction, with or without the element itself."""
    def want(x, axis, exclusive=False, reverse=False):
        def row(v):
            v = v[::-1] if reverse else v
            out = np.array(list(itertools.accumulate(v.tolist(), f)), x.dtype)
            if exclusive:
                out = np.array([start, *out[:-1]], x.dtype)[:len(v)]
            return out[::-1] if reverse else out
        return np.apply_along_axis(row, axis, x) if x.size else x
    return want


def scans(want, draw, exclusive=True):
    def drawn(d):
        for shape, axis in AXIS:
            yield Case((draw(d)(*shape),), want, {"axis": axis})
        left_out = [{"exclusive": True}, {"exclusive": True, "reverse": True}] if exclusive else []
        for attrs in ({"reverse": True}, *left_out):
            yield Case((draw(d)(2, 3),), want, {"axis": 1, **attrs})
    return drawn


def logaddexp(a, b):
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


cases("cumsum", "ints")(scans(running(lambda a, b: a + b, 0), lambda d: d.floats))
cases("logcumsumexp")(scans(running(logaddexp, -math.inf), lambda d: d.floats, exclusive=False))


@cases("cumprod", "ints")
def _(d):
    want = running(lambda a, b: a * b, 1)
    yield from scans(want, lambda d: d.positive)(d)
    for x in ([2.0, 0.0, 3.0, 5.0], [0.0, 2.0, 0.0, 3.0], [2.0, 3.0, 5.0, 0.0]):      # of one 0, of two, at an end
        yield Case((np.array(x),), want, {"axis": 0}, smooth=False)
        yield Case((np.array(x),), want, {"axis": 0, "exclusive": True, "reverse": True}, smooth=False)


for name, better in (("cummax", lambda a, b: a >= b), ("cummin", lambda a, b: a <= b)):
    @cases(name, "ints")
    def _(d, better=better):
        def want(x, axis, dtype=None):
            def row(v):
                best, places = 0, []
                for i, a in enumerate(v):
                    if better(a, v[best]) or a != a:
                        best = i
                    places.append(best)
                return np.array(places)
            places = np.apply_along_axis(row, axis, x) if x.size else np.zeros(x.shape, int)
            return np.take_along_axis(x, places, axis), places

        for shape, axis in AXIS:
            yield Case((d.distinct(*shape),), want, {"axis": axis}, smooth=False)
        yield Case((np.array([1.0, 3.0, 2.0, 3.0]),), want, {"axis": 0}, wrt=())
        yield Case((np.array([1.0, np.nan, 2.0]),), want, {"axis": 0}, wrt=())
        yield Case((d.distinct(3),), want, {"axis": 0, "dtype": np.dtype("int32")}, smooth=False)


# ------------------------------------------------------------------------------------------------ reductions
def folded(f):
    """f of the list of the elements that are folded into one."""
    def want(x, axis, keepdim=False):
        shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
        out = np.empty(shape, object)
        for at in np.ndindex(shape):
            out[at] = f(x[tuple(slice(None) if i in axis else slice(k, k + 1) for i, k in enumerate(at))].ravel()
                        .tolist())
        dtype = np.float64 if x.dtype.kind == "f" else x.dtype
        out = out.astype(bool if f in (all, any) else dtype)
        return out if keepdim else out.reshape(tuple(n for i, n in enumerate(x.shape) if i not in axis))
    return want


def reductions(f, draw, empty=True, smooth=True):
    def drawn(d):
        for shape, axis in [*AXES, *([((0,), (0,)), ((2, 0), (1,))] if empty else [])]:
            yield Case((draw(d)(*shape),), folded(f), {"axis": axis}, smooth=smooth)
        yield Case((draw(d)(2, 3),), folded(f), {"axis": (1,), "keepdim": True}, smooth=smooth)
    return drawn


cases("logsumexp")(reductions(lambda v: math.log(math.fsum(map(math.exp, v))) if v else -math.inf, lambda d: d.floats))
cases("all", "any")(reductions(all, lambda d: lambda *shape: d.bools(*shape).astype(float)))
cases("any", "any")(reductions(any, lambda d: lambda *shape: d.bools(*shape).astype(float)))


@cases("prod", "ints")
def _(d):
    yield from reductions(math.prod, lambda d: d.positive)(d)
    for x in ([2.0, 0.0, 3.0], [0.0, 2.0, 0.0]):
        yield Case((np.array(x),), folded(math.prod), {"axis": (0,)})
    yield Case((np.array([[2.0, 0.0], [3.0, 5.0]]),), folded(math.prod), {"axis": (0, 1)}, smooth=False)


@cases("argmin", "ints")
def _(d):
    def want(x, axis, keepdim=False, dtype=None):
        def row(v):
            return min(range(len(v)), key=lambda i: v[i])
        out = np.apply_along_axis(row, axis, x) if x.size else np.zeros(tuple(np.delete(x.shape, axis)), np.int64)
        return np.expand_dims(out, axis) if keepdim else out

    for shape, axis in (((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 2), 1), ((0, 3), 1)):
        yield Case((d.distinct(*shape),), want, {"axis": axis})
    yield Case((d.distinct(2, 3),), want, {"axis": 1, "keepdim": True, "dtype": np.dtype("int32")})
    yield Case((np.array([2.0, 1.0, 1.0]),), want, {"axis": 0})


@cases("isin", "any")
def _(d):
    def want(x, test_x, assume_unique=False, invert=False):
        among = set(test_x.ravel().tolist())
        return np.array([(v in among) != invert for v in x.ravel().tolist()], bool).reshape(x.shape)

    for a, b in (((), ()), ((4,), (3,)), ((2, 3), (2, 2)), ((0,), (3,)), ((3,), (0,))):
        for invert in (False, True):
            yield Case((np.rint(d.floats(*a)), np.rint(d.floats(*b))), want, {"invert": invert})
    yield Case((np.array([1.0, 2.0]), np.array([2.0, 3.0])), want, {"assume_unique": True})
