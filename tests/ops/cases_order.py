"""Cases of elements in another order, of diagonals, and of even steps."""

import numpy as np

from tests.ops.case import Case, cases


@cases("flip", "any")
def _(d):
    def want(x, axis):
        def mirrored(at):
            return tuple(n - 1 - i if a in axis else i for a, (i, n) in enumerate(zip(at, x.shape, strict=True)))
        return np.array([x[mirrored(at)] for at in np.ndindex(x.shape)]).reshape(x.shape)

    for shape, axis in (((5,), (0,)), ((2, 3), (1,)), ((2, 3, 2), (0, 2)), ((2, 2), ()), ((0, 3), (0,)), ((1,), (0,))):
        yield Case((d.floats(*shape),), want, {"axis": axis})


@cases("roll", "any")
def _(d):
    def want(x, shifts, axis):
        out = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            to = list(at)
            for s, a in zip(shifts, axis, strict=True):
                to[a] = (to[a] + s) % x.shape[a]
            out[tuple(to)] = x[at]
        return out

    for shape, shifts, axis in (((5,), (2,), (0,)), ((2, 3), (-4,), (1,)), ((2, 3, 2), (1, 5), (0, 1)),
                                ((0, 3), (1,), (1,)), ((3, 2), (1, 1), (0, 0)), ((2,), (0,), (0,))):
        yield Case((d.floats(*shape),), want, {"shifts": shifts, "axis": axis})


@cases("as_strided", "any")
def _(d):
    def want(x, shape, stride, offset=0):
        flat = x.reshape(-1)
        return np.array([flat[offset + sum(i * s for i, s in zip(at, stride, strict=True))]
                         for at in np.ndindex(*shape)]).reshape(shape)

    for own, shape, stride, offset in (((6,), (3, 2), (2, 1), 0), ((5,), (3, 3), (1, 1), 0),
                                       ((2, 3), (3, 2), (1, 3), 0), ((3, 4), (2, 2), (5, 2), 3),
                                       ((4,), (2, 3), (0, 1), 1), ((4,), (), (), 2),
                                       ((3,), (0, 2), (1, 1), 0)):
        yield Case((d.floats(*own),), want, {"shape": shape, "stride": stride, "offset": offset})


@cases("view_dtype")
def _(d):
    def halves(x, dtype):
        return np.stack([x & 0xFFFFFFFF, x >> 32], -1).reshape(*x.shape[:-1], 2 * x.shape[-1]).astype(dtype)

    def joined(x, dtype):
        return np.array([[(int(high) << 8) + int(low) for low, high in row.reshape(-1, 2)] for row in x]).astype(dtype)

    for shape in ((3,), (2, 1), (0, 2)):
        yield Case((d.ints(1 << 40, *shape),), halves, {"dtype": np.dtype("int32")}, wrt=())
    yield Case((d.ints(100, 2, 4).astype(np.uint8),), joined, {"dtype": np.dtype("int16")}, wrt=(), fixed=((0, 1),))


DIAGONALS = [((3, 3), 0, 0, 1), ((2, 4), 1, 0, 1), ((2, 4), -1, 0, 1), ((4, 2), 0, 1, 0), ((2, 3, 2), 0, 0, 2),
             ((2, 3, 4), 1, 1, 2), ((2, 2), 5, 0, 1), ((0, 3), 0, 0, 1)]


def on_diagonal(shape, offset, axis1, axis2):
    """(place in x, place on the diagonal) of each element."""
    rest = [n for a, n in enumerate(shape) if a not in (axis1, axis2)]
    for at in np.ndindex(*rest):
        for i in range(max(shape)):
            row, column = i - min(offset, 0), i + max(offset, 0)
            if row < shape[axis1] and column < shape[axis2]:
                place = iter(at)
                yield tuple(row if a == axis1 else column if a == axis2 else next(place)
                            for a in range(len(shape))), (*at, i)


def diagonal_of(x, offset=0, axis1=0, axis2=1):
    pairs = list(on_diagonal(x.shape, offset, axis1, axis2))
    rest = [n for a, n in enumerate(x.shape) if a not in (axis1, axis2)]
    out = np.zeros((*rest, 1 + max((to[-1] for _, to in pairs), default=-1)))
    for place, to in pairs:
        out[to] = x[place]
    return out


def sizes_matter(shape, axis1, axis2):
    """The length of a diagonal follows from the sizes, which a program has to know."""
    return tuple((0, a) for a in (axis1, axis2))


@cases("diagonal", "any")
def _(d):
    for shape, offset, axis1, axis2 in DIAGONALS:
        yield Case((d.floats(*shape),), diagonal_of, {"offset": offset, "axis1": axis1, "axis2": axis2},
                   fixed=sizes_matter(shape, axis1, axis2))
    yield Case((d.floats(3, 3),), diagonal_of, {"offset": 0, "axis1": 0, "axis2": 1})


@cases("fill_diagonal_tensor", "any")
def _(d):
    def want(x, y, offset=0, dim1=0, dim2=1):
        out = np.array(x)
        wide = np.broadcast_to(y, diagonal_of(x, offset, dim1, dim2).shape)
        for place, at in on_diagonal(x.shape, offset, dim1, dim2):
            out[place] = wide[at]
        return out

    for shape, offset, dim1, dim2 in DIAGONALS:
        attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
        part = diagonal_of(np.zeros(shape), offset, dim1, dim2).shape
        fixed = (*sizes_matter(shape, dim1, dim2), (1, -1))
        yield Case((d.floats(*shape), d.floats(*part)), want, attrs, fixed=fixed)
    yield Case((d.floats(2, 3, 3), 2.0), want, {"dim1": 1, "dim2": 2}, fixed=sizes_matter((2, 3, 3), 1, 2))
    yield Case((d.floats(3, 3), d.floats()), want)


@cases("linspace")
def _(d):
    def want(start, stop, num, dtype):
        return np.array([start + (stop - start) * i / max(num - 1, 1) for i in range(num)]).astype(dtype)

    for start, stop, num, dtype in ((0.0, 1.0, 5, "float64"), (3, -1, 3, "float32"), (0, 10, 5, "int32"),
                                    (2.0, 7.0, 1, "float64"), (0.0, 1.0, 0, "float64")):
        yield Case((), want, {"start": start, "stop": stop, "num": num, "dtype": np.dtype(dtype)})


@cases("eye")
def _(d):
    def want(num_rows, num_columns, dtype):
        return np.array([[i == j for j in range(num_columns)] for i in range(num_rows)]).reshape(
            num_rows, num_columns).astype(dtype)

    for n, m, dtype in ((2, 3, "float64"), (3, 3, "int32"), (0, 2, "float64"), (1, 1, "bool")):
        yield Case((), want, {"num_rows": n, "num_columns": m, "dtype": np.dtype(dtype)})
    yield Case((), want, {"num_rows": 3, "num_columns": 3, "dtype": np.dtype("float64")},
               symbolic=lambda s: {"num_rows": s(3), "num_columns": s(3), "dtype": np.dtype("float64")})
