"""Cases of reductions, broadcasts, products and movements."""

import itertools
import math

import numpy as np

from tests.ops.case import SHAPES, Case, cases

AXES = [((), ()), ((5,), (0,)), ((2, 3), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3, 5), (1,)),
        ((2, 3, 5), (0, 2)), ((1, 3), (0,)), ((3, 1), (0, 1))]
EMPTY = [((0,), (0,)), ((2, 0, 3), (1,)), ((2, 0, 3), (0, 2))]


def folded(f):
    """A reduction in Python: f on the list of elements that share an index of the dimensions that stay."""
    def want(x, axis, keepdim=False):
        shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
        groups = {at: [] for at in np.ndindex(shape)}
        for at in np.ndindex(x.shape):
            groups[tuple(0 if i in axis else n for i, n in enumerate(at))].append(float(x[at]))
        out = np.array([f(groups[at]) for at in np.ndindex(shape)], float).reshape(shape)
        return out if keepdim else out.reshape([n for i, n in enumerate(x.shape) if i not in axis])
    return want


def reduction(f, draw, empty=True, smooth=True):
    def drawn(d):
        for (shape, axis), keepdim in itertools.product(AXES + (EMPTY if empty else []), (False, True)):
            yield Case((draw(d)(*shape),), folded(f), {"axis": axis, "keepdim": keepdim}, smooth=smooth)
    return drawn


def mean(values):
    return math.fsum(values) / len(values) if values else math.nan


def distinct(d):
    return d.distinct


cases("sum", "ints")(reduction(math.fsum, lambda d: d.floats))
cases("mean")(reduction(mean, lambda d: d.floats))


def extreme(f):
    def drawn(d):
        yield from reduction(f, distinct, empty=False, smooth=False)(d)
        yield Case((d.distinct(0, 3),), folded(f), {"axis": (1,), "keepdim": False}, smooth=False)
    return drawn


cases("max", "ints")(extreme(max))
cases("min", "ints")(extreme(min))


@cases("argmax", "ints")
def _(d):
    def want(x, axis, keepdim=False, dtype=np.int64):
        rows = folded(lambda v: v.index(max(v)))(x, (axis,), keepdim)
        return rows.astype(dtype)

    for shape, axis in (((5,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 5), 1), ((0, 3), 1)):
        for keepdim in (False, True):
            yield Case((d.distinct(*shape),), want, {"axis": axis, "keepdim": keepdim})
    yield Case((np.array([[1.0, 7.0, 7.0], [2.0, 2.0, 0.0]]),), want, {"axis": 1, "dtype": np.dtype("int32")})


# ------------------------------------------------------------------------------------------------ broadcasts
BROADCASTS = [((), ()), ((), (2, 3)), ((1,), (5,)), ((3, 1), (3, 4)), ((3, 1), (2, 3, 4)), ((1, 1), (2, 3, 4)),
              ((2, 3), (2, 3)), ((1, 3), (0, 3)), ((1,), (0,)), ((2, 1, 1), (2, 3, 1))]


def stretched(x, shape):
    """Element by element: the index of a stretched dimension is 0."""
    out = np.zeros(shape)
    for at in np.ndindex(shape):
        own = at[len(shape) - x.ndim:]
        out[at] = x[tuple(0 if n == 1 else i for i, n in zip(own, x.shape, strict=True))]
    return out


def summed(x, shape):
    out = np.zeros(shape)
    for at in np.ndindex(x.shape):
        own = at[x.ndim - len(shape):]
        out[tuple(0 if n == 1 else i for i, n in zip(own, shape, strict=True))] += x[at]
    return out


@cases("expand", "any")
def _(d):
    for own, shape in BROADCASTS:
        yield Case((d.floats(*own),), stretched, {"shape": shape},
                   symbolic=lambda s, shape=shape: {"shape": tuple(map(s, shape))})


@cases("expand_as", "any")
def _(d):
    for own, shape in BROADCASTS:
        yield Case((d.floats(*own), d.floats(*shape)), lambda x, target: stretched(x, target.shape), wrt=(0,))


@cases("reduce_as", "ints")
def _(d):
    for own, shape in BROADCASTS:
        yield Case((d.floats(*shape), d.floats(*own)), lambda x, target: summed(x, target.shape), wrt=(0,))


# ------------------------------------------------------------------------------------------------ products
@cases("matmul", "ints")
def _(d):
    def want(x, y, transpose_x=False, transpose_y=False):
        x = np.einsum("...ij->...ji", x) if transpose_x else x
        y = np.einsum("...ij->...ji", y) if transpose_y else y
        return np.einsum("...mk,...kn->...mn", x, y)

    batches = [((), ()), ((3,), ()), ((), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0,), ()), ((2, 3), ())]
    for (left, right), tx, ty in itertools.product(batches, (False, True), (False, True)):
        x, y = d.floats(*left, *((5, 2) if tx else (2, 5))), d.floats(*right, *((3, 5) if ty else (5, 3)))
        yield Case((x, y), want, {"transpose_x": tx, "transpose_y": ty})
    for m, k, n in ((1, 1, 1), (0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 7, 1)):
        yield Case((d.floats(m, k), d.floats(k, n)), want)
        yield Case((d.floats(2, m, k), d.floats(k, n)), want)


# ------------------------------------------------------------------------------------------------ movements
@cases("assign", "any")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda x: np.array(x.tolist(), float).reshape(x.shape))


@cases("share_data_", "any")
def _(d):
    for shape in SHAPES:
        yield Case((d.floats(*shape),), lambda x: x)


@cases("reshape", "any")
def _(d):
    for own, shape in (((2, 3), (6,)), ((6,), (3, 2)), ((2, 3, 5), (10, 3)), ((), (1, 1)), ((1,), ()), ((0, 3), (5, 0)),
                       ((2, 3), (2, 3))):
        yield Case((d.floats(*own),), lambda x, shape: np.array(list(x.flat), float).reshape(shape), {"shape": shape})
    yield Case((d.floats(4, 3, 5),), lambda x, shape: np.array(list(x.flat)).reshape(shape), {"shape": (12, 5)},
               symbolic=lambda s: {"shape": (s(4) * s(3), s(5))})
    yield Case((d.floats(3, 8),), lambda x, shape: np.array(list(x.flat)).reshape(shape), {"shape": (3, 2, 4)},
               symbolic=lambda s: {"shape": (s(3), 2, s(8) / 2)})


@cases("squeeze", "any")
def _(d):
    for shape, axis in (((1,), (0,)), ((2, 1, 3), (1,)), ((1, 2, 1, 3, 1), (0, 4)), ((1, 0), (0,)), ((1, 1), (0, 1))):
        yield Case((d.floats(*shape),), lambda x, axis: np.squeeze(x, axis), {"axis": axis})


@cases("unsqueeze", "any")
def _(d):
    for shape, axis in (((), (0,)), ((3,), (1,)), ((2, 3), (0, 3)), ((2, 3), (1, 2)), ((0,), (0,)), ((), (0, 1))):
        yield Case((d.floats(*shape),), lambda x, axis: np.expand_dims(x, axis), {"axis": axis})


@cases("transpose", "any")
def _(d):
    def want(x, perm):
        out = np.zeros([x.shape[p] for p in perm])
        for at in np.ndindex(out.shape):
            source = [0] * x.ndim
            for i, p in enumerate(perm):
                source[p] = at[i]
            out[at] = x[tuple(source)]
        return out

    for shape, perm in (((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3, 5), (2, 0, 1)), ((2, 0, 3), (1, 2, 0))):
        yield Case((d.floats(*shape),), want, {"perm": perm})


def positions(shape, axes, starts, ends, strides):
    ranges = [range(n) for n in shape]
    for a, b, e, s in zip(axes, starts, ends, strides, strict=True):
        ranges[a] = range(b, e, s)
    return ranges


#: shape, axes, starts, ends, strides; normalised as the rows want them (the hard case A5 among them)
PARTS = [
    ((5,), (0,), (1,), (4,), (1,)), ((5,), (0,), (0,), (5,), (2,)), ((5,), (0,), (4,), (0,), (-3,)),
    ((5,), (0,), (4,), (2,), (-3,)), ((5,), (0,), (4,), (-1,), (-1,)), ((5,), (0,), (3,), (3,), (1,)),
    ((2, 3), (0,), (1,), (2,), (2,)), ((4, 6, 5), (0, 2), (1, 4), (3, -1), (1, -2)), ((2, 0), (0,), (0,), (1,), (1,)),
    ((3, 7), (1,), (6,), (-1,), (-5,)), ((2, 3), (), (), (), ()), ((2, 3), (1, 0), (0, 1), (2, 2), (1, 1)),
]  # fmt: skip


def part_of(x, axes, starts, ends, strides):
    return x[np.ix_(*positions(x.shape, axes, starts, ends, strides))]


@cases("slice", "any")
def _(d):
    for shape, axes, starts, ends, strides in PARTS:
        if all(s == 1 for s in strides):
            yield Case((d.floats(*shape),), lambda x, **part: part_of(x, **part, strides=(1,) * len(part["axes"])),
                       {"axes": axes, "starts": starts, "ends": ends})
    yield Case((d.floats(7, 3),), lambda x, axes, starts, ends: x[1:7], {"axes": (0,), "starts": (1,), "ends": (7,)},
               symbolic=lambda s: {"axes": (0,), "starts": (1,), "ends": (s(7),)})


@cases("strided_slice", "any")
def _(d):
    for shape, axes, starts, ends, strides in PARTS:
        yield Case((d.floats(*shape),), part_of,
                   {"axes": axes, "starts": starts, "ends": ends, "strides": strides})


@cases("set_value", "any")
def _(d):
    def want(x, value, axes, starts, ends, strides):
        out = x.copy()
        out[np.ix_(*positions(x.shape, axes, starts, ends, strides))] = value
        return out

    for shape, axes, starts, ends, strides in PARTS:
        attrs = {"axes": axes, "starts": starts, "ends": ends, "strides": strides}
        x = d.floats(*shape)
        part = part_of(x, **attrs).shape
        yield Case((x, d.floats(*part)), want, attrs)
        yield Case((x, 3.0), want, attrs)
        yield Case((x, d.floats()), want, attrs)
        yield Case((x, d.floats(1, 1, *part)), want, attrs)
        if len(part) > 1:
            yield Case((x, d.floats(part[-1])), want, attrs)
            yield Case((x, d.floats(*part[:-1], 1)), want, attrs)


@cases("concat", "any")
def _(d):
    def want(*xs, axis):
        return np.moveaxis(np.array([row for x in xs for row in np.moveaxis(x, axis, 0)]), 0, axis)

    for rest, axis, sizes in (((), 0, (2, 3)), ((3,), 0, (1, 2, 4)), ((3,), 1, (2, 5)), ((2, 5), 1, (1, 1)),
                              ((3,), 0, (2,)), ((3,), 1, (0, 2))):
        yield Case(tuple(d.floats(*rest[:axis], n, *rest[axis:]) for n in sizes), want, {"axis": axis})
    yield Case((d.floats(0), d.floats(0)), lambda *xs, axis: np.zeros(0), {"axis": 0})


@cases("split", "any")
def _(d):
    def want(x, sections, axis):
        rows = iter(np.moveaxis(x, axis, 0))
        empty = np.moveaxis(x, axis, 0)[:0]
        return tuple(np.moveaxis(np.array([next(rows) for _ in range(n)]) if n else empty, 0, axis) for n in sections)

    for shape, sections, axis in (((5,), (2, 3), 0), ((6, 2), (1, 2, 3), 0), ((2, 6), (2, 2, 2), 1),
                                  ((2, 5), (0, 5), 1), ((3, 2), (3,), 0), ((0, 4), (1, 3), 1)):
        yield Case((d.floats(*shape),), want, {"sections": sections, "axis": axis})
    yield Case((d.floats(8, 3),), want, {"sections": (4, 4), "axis": 0},
               symbolic=lambda s: {"sections": (s(8) / 2, s(8) / 2), "axis": 0})


def triangle(keep):
    def want(x, diagonal=0):
        out = x.copy()
        for at in np.ndindex(x.shape):
            if not keep(at[-1] - at[-2], diagonal):
                out[at] = 0
        return out
    return want


for _name, _keep in (("tril", lambda offset, k: offset <= k), ("triu", lambda offset, k: offset >= k)):
    @cases(_name, "any")
    def _(d, keep=_keep):
        for shape in ((3, 3), (2, 5), (5, 2), (2, 3, 4), (0, 3), (1, 1)):
            for diagonal in (0, 1, -1, 7):
                yield Case((d.floats(*shape),), triangle(keep), {"diagonal": diagonal})


