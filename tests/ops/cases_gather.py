"""Cases of reading and writing elements by number."""

import numpy as np

from tests.ops.case import Case, cases


def numbers(d, n, *shape):
    """Some counted from the end, some twice."""
    return d.ints(2 * n, *shape) - n if n else np.zeros(shape, int)


SLICES = [((5,), 0, (3,)), ((5,), 0, ()), ((2, 3), 1, (4,)), ((3, 2, 2), 0, (2, 2)), ((2, 3, 2), 1, (0,)),
          ((0, 3), 1, (2,)), ((0, 2), 0, (0,)), ((2, 1), 1, (3,))]


@cases("gather", "any")
def _(d):
    def want(x, index, axis=0):
        out = np.zeros((*x.shape[:axis], *index.shape, *x.shape[axis + 1:]))
        for i in np.ndindex(index.shape):
            out[(slice(None),) * axis + i] = x[(slice(None),) * axis + (index[i],)]
        return out

    for shape, axis, index in SLICES:
        yield Case((d.floats(*shape), numbers(d, shape[axis], *index)), want, {"axis": axis})
    yield Case((np.array([np.inf, np.nan, 1.0]), np.array([-1, 0])), want, wrt=())


@cases("index_add", "ints")
def _(d):
    def want(x, index, value, axis=0):
        out = np.array(x)
        for i in np.ndindex(index.shape):
            out[(slice(None),) * axis + (index[i],)] += value[(slice(None),) * axis + i]
        return out

    for shape, axis, index in SLICES:
        value = d.floats(*shape[:axis], *index, *shape[axis + 1:])
        yield Case((d.floats(*shape), numbers(d, shape[axis], *index), value), want, {"axis": axis})


def tuples(d, shape, k, *batch):
    return np.stack([numbers(d, n, *batch) for n in shape[:k]], -1)


TUPLES = [((5,), 1, (3,)), ((5,), 1, ()), ((3, 2), 2, (4,)), ((3, 2), 1, (2, 2)), ((2, 3, 2), 2, (3,)),
          ((2, 2), 2, (0,)), ((0, 3), 1, (0,)), ((2, 0), 1, (2,))]
LAST = ((1, -1),)                                   # how many numbers make a tuple, a program has to know


def places(index):
    for at in np.ndindex(index.shape[:-1]):
        yield at, tuple(index[at])


@cases("gather_nd", "any")
def _(d):
    def want(x, index):
        out = np.zeros((*index.shape[:-1], *x.shape[index.shape[-1]:]))
        for at, place in places(index):
            out[at] = x[place]
        return out

    for shape, k, batch in TUPLES:
        yield Case((d.floats(*shape), tuples(d, shape, k, *batch)), want, fixed=LAST)


@cases("scatter_nd_add", "ints")
def _(d):
    def want(x, index, updates):
        out = np.array(x)
        for at, place in places(index):
            out[place] += updates[at]
        return out

    for shape, k, batch in TUPLES:
        yield Case((d.floats(*shape), tuples(d, shape, k, *batch), d.floats(*batch, *shape[k:])), want, fixed=LAST)


@cases("index_put", "any")
def _(d):
    def want(x, index, value):
        out = np.array(x)
        wide = np.broadcast_to(value, (*index.shape[:-1], *x.shape[index.shape[-1]:]))
        for at, place in places(index):
            out[place] = wide[at]
        return out

    for shape, k, batch in TUPLES:
        yield Case((d.floats(*shape), tuples(d, shape, k, *batch), d.floats(*batch, *shape[k:])), want, fixed=LAST)
    index = np.array([[1], [0], [-1]])
    for value in (d.floats(), d.floats(3), d.floats(3, 1), d.floats(1, 1), 2.0):
        yield Case((d.floats(2, 3), index, value), want, fixed=LAST)


@cases("put_along_axis", "ints")
def _(d):
    def want(arr, indices, values, axis, reduce="assign"):
        out = np.array(arr)
        for at in np.ndindex(indices.shape):
            to = (*at[:axis], indices[at], *at[axis + 1:])
            out[to] = values[at] + (out[to] if reduce == "add" else 0)
        return out

    for shape, axis, n in (((4,), 0, 3), ((2, 5), 1, 4), ((3, 2), 0, 1), ((2, 3, 2), 1, 5), ((2, 3), 0, 0),
                           ((0, 2), 1, 3)):
        at = (*shape[:axis], n, *shape[axis + 1:])
        for reduce in ("assign", "add"):
            numbers = d.ints(2 * shape[axis], *at) - shape[axis]
            yield Case((d.floats(*shape), numbers, d.floats(*at)), want, {"axis": axis, "reduce": reduce})


@cases("scatter_nd_reduce", "ints")
def _(d):
    def want(x, index, updates, reduce):
        out = np.array(x)
        for at, place in places(index):
            pair = np.stack([out[place], updates[at]])
            out[place] = {"mul": pair.prod(0), "amin": pair.min(0), "amax": pair.max(0)}[reduce]
        return out

    for reduce in ("mul", "amin", "amax"):
        for shape, k, batch in TUPLES:
            n, m = np.prod(shape, dtype=int), np.prod((*batch, *shape[k:]), dtype=int)
            values = d.distinct(n + m)
            x, updates = values[:n].reshape(shape), values[n:].reshape((*batch, *shape[k:]))
            yield Case((x, tuples(d, shape, k, *batch), updates), want, {"reduce": reduce}, fixed=LAST)
