"""Cases of pooling: every window cut out of the padded image and folded by numpy."""

import itertools
import math

import numpy as np

from tests.ops.case import Case, cases


def sliding(size, kernel, stride, before, after, ceil):
    """[first, last] places of each window, in the padded dimension."""
    end = before + size + after
    spare = (end - kernel) / stride
    n = (math.ceil if ceil else math.floor)(spare) + 1
    return [(i * stride, i * stride + kernel) for i in range(n)]


def adaptive_windows(size, n):
    return [(math.floor(i * size / n), math.ceil((i + 1) * size / n)) for i in range(n)]


def pieces(x, kernel_size, strides, paddings, ceil_mode=False, adaptive=False):
    """(window, its index in the padded image, which of that is no padding, which of it is in the padded image)"""
    n = x.ndim - 2
    if adaptive:
        each = [adaptive_windows(s, k) for s, k in zip(x.shape[2:], kernel_size, strict=True)]
        paddings = (0,) * (2 * n)
    else:
        each = [sliding(*of_axis, ceil_mode) for of_axis in zip(
            x.shape[2:], kernel_size, strides, paddings[::2], paddings[1::2], strict=True)]
    for window in itertools.product(*(range(len(e)) for e in each)):
        elements = list(itertools.product(*(range(*e[w]) for e, w in zip(each, window, strict=True))))
        at = [tuple(i - b for i, b in zip(e, paddings[::2], strict=True)) for e in elements]
        real = [e for e in at if all(0 <= i < s for i, s in zip(e, x.shape[2:], strict=True))]
        counted = [e for e in at if all(i < s + a for i, s, a in zip(e, x.shape[2:], paddings[1::2], strict=True))]
        yield window, real, len(counted), tuple(len(e) for e in each)


def pool(x, exclusive=True, pooling_type="avg", **windows):
    out = None
    for window, real, counted, sizes in pieces(x, **windows):
        out = np.zeros((*x.shape[:2], *sizes)) if out is None else out
        total = sum(x[(slice(None), slice(None), *e)] for e in real)
        by = 1 if pooling_type == "sum" else len(real) if exclusive else counted
        out[(slice(None), slice(None), *window)] = total / by if by else np.nan
    return out


def pool_grad(g, like, exclusive=True, pooling_type="avg", **windows):
    out = np.zeros(like.shape)
    for window, real, counted, _ in pieces(like, **windows):
        by = 1 if pooling_type == "sum" else len(real) if exclusive else counted
        for e in real:
            out[(slice(None), slice(None), *e)] += g[(slice(None), slice(None), *window)] / by
    return out


def max_pool(x, **windows):
    out = None
    for window, real, _, sizes in pieces(x, **windows):
        if out is None:
            out, mask = np.zeros((*x.shape[:2], *sizes), x.dtype), np.zeros((*x.shape[:2], *sizes), int)
        for image in np.ndindex(*x.shape[:2]):
            if not real:
                out[(*image, *window)], mask[(*image, *window)] = -np.inf, -1
                continue
            values = [x[(*image, *e)] for e in real]
            best = int(np.argmax(values))                       # the first; NaN if there is one
            out[(*image, *window)] = values[best]
            mask[(*image, *window)] = np.ravel_multi_index(real[best], x.shape[2:])
    return out, mask


def windows(kernel_size, strides=None, paddings=0, **how):
    n = len(kernel_size)
    return {"kernel_size": kernel_size, "strides": kernel_size if strides is None else strides,
            "paddings": paddings if isinstance(paddings, tuple) else (paddings,) * (2 * n), **how}


#: (shape, how windows lie, whether they leave a rest or depend on the size in another way)
PLANE = [
    ((2, 3, 4, 4), windows((2, 2)), False),
    ((1, 2, 5, 5), windows((3, 3), (2, 2), 1), False),
    ((1, 1, 5, 6), windows((2, 3), (2, 1), (0, 1, 1, 0)), False),
    ((1, 1, 5, 4), windows((2, 2), (2, 3), ceil_mode=True), True),
    ((2, 1, 5, 3), windows((3, 2), adaptive=True), True),
    ((1, 1, 2, 9), windows((3, 1), adaptive=True), True),
    ((0, 2, 3, 3), windows((2, 2), (1, 1)), False),
]
SPACE = [
    ((1, 2, 2, 4, 2), windows((2, 2, 1)), False),
    ((1, 1, 3, 2, 3), windows((2, 2, 2), (1, 1, 1), (1, 0, 0, 0, 0, 1)), False),
    ((1, 1, 3, 2, 2), windows((2, 1, 2), adaptive=True), True),
]


def spatial(shape, fixed, *operands):
    return tuple((i, axis) for i in operands for axis in range(2, len(shape))) if fixed else ()


for _row, _layouts in (("2d", PLANE), ("3d", SPACE)):
    @cases(f"pool{_row}")
    def _(d, layouts=_layouts):
        for shape, how, fixed in layouts:
            yield Case((d.floats(*shape),), pool, how, fixed=spatial(shape, fixed, 0))
        shape, how, _ = layouts[1]
        yield Case((d.floats(*shape),), pool, how | {"exclusive": False})
        yield Case((d.floats(*shape),), pool, how | {"pooling_type": "sum"})
        shape, how, _ = layouts[0]
        yield Case((d.floats(*shape),), pool, how | {"ceil_mode": True, "exclusive": False})

    @cases(f"pool{_row}_grad")
    def _(d, layouts=_layouts):
        for shape, how, fixed in layouts:
            g = d.floats(*pool(np.zeros(shape), **how).shape)
            fixed = fixed or max(how["strides"]) > 1           # the symbols of both operands say nothing of a stride
            yield Case((g, np.zeros(shape)), pool_grad, how, wrt=(0,), fixed=spatial(shape, fixed, 0, 1))
        shape, how, _ = layouts[1]
        g, known = d.floats(*pool(np.zeros(shape), **how).shape), spatial(shape, True, 0, 1)
        yield Case((g, np.zeros(shape)), pool_grad, how | {"exclusive": False}, wrt=(0,), fixed=known)
        yield Case((g, np.zeros(shape)), pool_grad, how | {"pooling_type": "sum"}, wrt=(0,), fixed=known)

    @cases(f"max_pool{_row}_with_index", "ints")
    def _(d, layouts=_layouts):
        for shape, how, fixed in layouts:
            yield Case((d.distinct(*shape),), max_pool, how, fixed=spatial(shape, fixed, 0))
        x = np.array([[np.nan, -np.inf, 3.0, 3.0], [-np.inf, -np.inf, 3.0, 2.0]]).reshape(
            (1, 1) + (1,) * (len(shape) - 4) + (2, 4))
        n = x.ndim - 2
        yield Case((x,), max_pool, windows((1,) * (n - 2) + (2, 2), (1,) * n), wrt=())
        yield Case((x[..., 1:],), max_pool, windows((1,) * (n - 2) + (2, 2), (1,) * n, (0, 0) * (n - 1) + (1, 1)),
                   wrt=())


def fractional(n, m, kernel, u):
    """[first, last] places of each window."""
    if kernel:
        a = (n - kernel) / (m - 1) if m > 1 else 0
        starts = [math.floor(a * (i + u)) - math.floor(a * u) for i in range(m)]
        return [(s, s + kernel) for s in starts]
    a = n / m
    u = u * min((n // m + 2) / a - 1, (n + 1 - n // m) / a - (m - 1))
    edges = [math.floor(a * (i + u)) - math.floor(a * u) for i in range(m + 1)]
    return [(s, min(e, n)) for s, e in itertools.pairwise(edges)]


def fractional_max_pool(x, output_size, kernel_size, random_u):
    each = [fractional(n, m, k, random_u) for n, m, k in zip(x.shape[2:], output_size, kernel_size, strict=True)]
    out, mask = np.zeros((*x.shape[:2], *output_size)), np.zeros((*x.shape[:2], *output_size), int)
    for at in np.ndindex(*out.shape):
        ranges = [range(*e[w]) for e, w in zip(each, at[2:], strict=True)]
        part = {x[(*at[:2], *e)]: e for e in itertools.product(*ranges)}
        out[at] = max(part)
        mask[at] = np.ravel_multi_index(part[max(part)], x.shape[2:])
    return out, mask


for _row, _layouts in (("2d", [((1, 2, 7, 5), (5, 2), (0, 0), 0.3), ((2, 1, 4, 7), (2, 3), (2, 3), 0.8),
                               ((0, 1, 3, 3), (2, 2), (0, 0), 0.5)]),
                       ("3d", [((1, 1, 3, 5, 2), (2, 3, 1), (0, 0, 0), 0.6),
                               ((1, 1, 2, 5, 3), (1, 2, 2), (2, 3, 2), 0.1)])):
    @cases(f"fractional_max_pool{_row}")
    def _(d, layouts=_layouts):
        for shape, output_size, kernel_size, u in layouts:
            yield Case((d.distinct(*shape),), fractional_max_pool,
                       {"output_size": output_size, "kernel_size": kernel_size, "random_u": u})


@cases("unpool", "any")
def _(d):
    def want(x, indices, output_size):
        out = np.zeros((*x.shape[:2], *output_size))
        for at in np.ndindex(*x.shape):
            out[(*at[:2], *np.unravel_index(indices[at], output_size))] = x[at]
        return out

    for shape, output_size in (((2, 1, 2, 2), (4, 3)), ((1, 2, 3), (7,)), ((1, 1, 1, 2, 2), (2, 2, 3)),
                               ((0, 1, 2), (4,))):
        size = math.prod(output_size)
        indices = np.stack([d.rng.permutation(size)[:math.prod(shape[2:])] for _ in range(math.prod(shape[:2]))] or
                           [np.zeros(0, int)]).reshape(shape)
        yield Case((d.floats(*shape), indices), want, {"output_size": output_size})
