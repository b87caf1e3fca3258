"""Cases of convolutions and of windows as columns: every product written as a loop over all indices."""

import itertools

import numpy as np

from tests.ops.case import Case, cases


def meetings(sizes, kernel, windows, strides, paddings, dilations):
    """(element, place in the window, window) wherever a window has an element under it, none of the padding."""
    for window in itertools.product(*map(range, windows)):
        for place in itertools.product(*map(range, kernel)):
            element = tuple(w * s + k * d - p for w, s, k, d, p in zip(
                window, strides, place, dilations, paddings[::2], strict=True))
            if all(0 <= e < n for e, n in zip(element, sizes, strict=True)):
                yield element, place, window


def windows_of(sizes, kernel, strides, paddings, dilations):
    """How many windows fit along each dimension: by trying."""
    ends = [n + b + a for n, b, a in zip(sizes, paddings[::2], paddings[1::2], strict=True)]
    return tuple(sum(1 for start in range(0, end, s) if start + (k - 1) * d < end)
                 for end, k, s, d in zip(ends, kernel, strides, dilations, strict=True))


def channels(outputs, inputs, groups):
    """(output channel, input channel, that one's number in its group) that belong together."""
    for o, i in itertools.product(range(outputs), range(inputs)):
        if o * groups // max(outputs, 1) == i * groups // inputs:
            yield o, i, i % (inputs // groups)


def conv(x, filter, strides, paddings, dilations, groups):
    sizes, kernel = x.shape[2:], filter.shape[2:]
    windows = windows_of(sizes, kernel, strides, paddings, dilations)
    out = np.zeros((len(x), len(filter), *windows))
    for element, place, window in meetings(sizes, kernel, windows, strides, paddings, dilations):
        for o, i, c in channels(len(filter), x.shape[1], groups):
            out[(slice(None), o, *window)] += x[(slice(None), i, *element)] * filter[(o, c, *place)]
    return out


def conv_transpose(x, filter, strides, paddings, output_padding, dilations, groups):
    windows, kernel = x.shape[2:], filter.shape[2:]
    sizes = tuple((w - 1) * s + (k - 1) * d + 1 - b - a + m for w, s, k, d, b, a, m in zip(
        windows, strides, kernel, dilations, paddings[::2], paddings[1::2], output_padding, strict=True))
    out = np.zeros((len(x), filter.shape[1] * groups, *sizes))
    for element, place, window in meetings(sizes, kernel, windows, strides, paddings, dilations):
        for o, i, c in channels(len(filter), out.shape[1], groups):
            out[(slice(None), i, *element)] += x[(slice(None), o, *window)] * filter[(o, c, *place)]
    return out


def conv_filter_grad(x, g, like, strides, paddings, dilations, groups):
    out = np.zeros(like.shape)
    for element, place, window in meetings(x.shape[2:], like.shape[2:], g.shape[2:], strides, paddings, dilations):
        for o, i, c in channels(len(like), x.shape[1], groups):
            out[(o, c, *place)] += (x[(slice(None), i, *element)] * g[(slice(None), o, *window)]).sum()
    return out


class Layout:
    """Sizes of one case: image, filter, and how windows slide."""

    def __init__(self, x, filter, strides=1, paddings=0, dilations=1, groups=1):
        n = len(x) - 2
        self.x, self.filter = x, filter
        self.attrs = {"strides": strides if isinstance(strides, tuple) else (strides,) * n,
                      "paddings": paddings if isinstance(paddings, tuple) else (paddings,) * (2 * n),
                      "dilations": dilations if isinstance(dilations, tuple) else (dilations,) * n, "groups": groups}
        self.windows = windows_of(x[2:], filter[2:], *list(self.attrs.values())[:3])
        self.g = (x[0], filter[0], *self.windows)
        self.rest = tuple(
            (e + b + a - (k - 1) * d - 1) % s for e, k, s, d, b, a in zip(
                x[2:], filter[2:], self.attrs["strides"], self.attrs["dilations"], self.attrs["paddings"][::2],
                self.attrs["paddings"][1::2], strict=True))

    def fixed(self, *operands):
        """Spatial dimensions, of which a program must know the sizes where windows leave a rest."""
        n = len(self.x)
        return tuple((i, axis) for i in operands for axis in range(2, n)) if any(self.rest) else ()

    def strided(self, *operands):
        """The same for an operator that is given the windows too: the symbols for both say nothing of a stride."""
        n = len(self.x)
        return tuple((i, axis) for i in operands for axis in range(2, n)) if max(self.attrs["strides"]) > 1 else ()


PLANE = [
    Layout((2, 2, 3, 4), (3, 2, 2, 2)),
    Layout((1, 1, 5, 5), (2, 1, 3, 3), strides=2, paddings=1),
    Layout((1, 1, 4, 6), (1, 1, 3, 2), strides=(2, 3), paddings=(0, 1, 2, 0)),
    Layout((1, 1, 5, 4), (1, 1, 2, 2), dilations=(3, 2)),
    Layout((1, 4, 2, 3), (4, 2, 2, 1), groups=2),
    Layout((2, 3, 2, 2), (3, 1, 1, 1), groups=3),
    Layout((2, 2, 2, 2), (3, 2, 1, 1)),
    Layout((0, 2, 3, 3), (1, 2, 2, 2)),
]
SPACE = [
    Layout((1, 2, 2, 3, 2), (2, 2, 2, 2, 1)),
    Layout((2, 1, 3, 2, 3), (1, 1, 2, 1, 2), strides=(2, 1, 1), paddings=(1, 0, 0, 1, 1, 0), dilations=(1, 2, 2)),
    Layout((1, 2, 1, 2, 2), (2, 1, 1, 2, 1), groups=2),
]

for _row, _layouts in (("conv2d", PLANE), ("conv3d", SPACE)):
    @cases(_row)
    def _(d, layouts=_layouts):
        for at in layouts:
            yield Case((d.floats(*at.x), d.floats(*at.filter)), conv, at.attrs, fixed=at.fixed(0, 1))

    @cases(f"{_row}_transpose")
    def _(d, layouts=_layouts):
        for at in layouts:
            yield Case((d.floats(*at.g), d.floats(*at.filter)), conv_transpose,
                       at.attrs | {"output_padding": at.rest}, fixed=at.fixed(0, 1))

    @cases(f"{_row}_filter_grad")
    def _(d, layouts=_layouts):
        for at in layouts:
            yield Case((d.floats(*at.x), d.floats(*at.g), np.zeros(at.filter)), conv_filter_grad, at.attrs, wrt=(0, 1),
                       fixed=at.fixed(0, 1, 2) or at.strided(0, 1, 2))


# ------------------------------------------------------------------------------------------ windows as columns
def unfold(x, kernel_sizes, strides, paddings, dilations):
    windows = windows_of(x.shape[2:], kernel_sizes, strides, paddings, dilations)
    out = np.zeros((*x.shape[:2], *kernel_sizes, *windows))
    for element, place, window in meetings(x.shape[2:], kernel_sizes, windows, strides, paddings, dilations):
        out[(slice(None), slice(None), *place, *window)] = x[(slice(None), slice(None), *element)]
    return out.reshape(len(x), x.shape[1] * np.prod(kernel_sizes), np.prod(windows))


def fold(x, output_sizes, kernel_sizes, strides, paddings, dilations):
    windows = windows_of(output_sizes, kernel_sizes, strides, paddings, dilations)
    n, c = len(x), x.shape[1] // np.prod(kernel_sizes)
    x = x.reshape(n, c, *kernel_sizes, *windows)
    out = np.zeros((n, c, *output_sizes))
    for element, place, window in meetings(output_sizes, kernel_sizes, windows, strides, paddings, dilations):
        out[(slice(None), slice(None), *element)] += x[(slice(None), slice(None), *place, *window)]
    return out


def columns(at):
    return {"kernel_sizes": at.filter[2:]} | {k: v for k, v in at.attrs.items() if k != "groups"}


@cases("unfold")
def _(d):
    for at in PLANE[:4] + PLANE[6:]:
        yield Case((d.floats(*at.x),), unfold, columns(at), fixed=at.fixed(0))


@cases("fold")
def _(d):
    for at in PLANE[:4] + PLANE[6:]:
        shape = (at.x[0], at.x[1] * int(np.prod(at.filter[2:])), int(np.prod(at.windows)))
        yield Case((d.floats(*shape),), fold, columns(at) | {"output_sizes": at.x[2:]}, fixed=((0, 1), (0, 2)))
