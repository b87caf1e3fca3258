"""Cases of operators that fuse several: normalisation, rotary embedding."""

import math

import numpy as np

from tests.ops.case import Case, cases


@cases("rms_norm")
def _(d):
    def want(x, scale, epsilon=1e-5):
        def row(v):
            root = math.sqrt(math.fsum(u * u for u in v) / len(v) + epsilon)
            return np.array([u / root for u in v])
        rows = x.reshape(*x.shape[:x.ndim - scale.ndim], scale.size)
        return (np.apply_along_axis(row, -1, rows).reshape(x.shape) if x.size else x) * scale

    for shape, n in (((5,), 1), ((2, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((3, 1), 1), ((0, 3), 1), ((3, 0), 1)):
        yield Case((d.floats(*shape), d.floats(*shape[len(shape) - n:])), want)
    yield Case((d.floats(3, 4), d.floats(4)), want, {"epsilon": 0.5})
    yield Case((np.zeros((2, 3)), d.floats(3)), want, {"epsilon": 0.25})


@cases("fused_rotary_position_embedding")
def _(d):
    def want(x, cos, sin):
        half = x.shape[-1] // 2
        turned = (x[..., :half] + 1j * x[..., half:]) * (cos + 1j * sin)      # a pair is a complex number
        return np.concatenate([turned.real, turned.imag], -1)

    for shape in ((4,), (5, 2), (3, 5, 4), (2, 1, 3, 6), (0, 2), (2, 0)):
        half = (*shape[-2:-1], shape[-1] // 2)
        yield Case((d.floats(*shape), d.floats(*half), d.floats(*half)), want)
    yield Case((d.floats(2, 3, 4), d.floats(1, 2), d.floats(3, 1)), want)
    for shape in ((5, 2), (2, 3, 6), (0, 4)):                                   # a number for each place

        def each(x, cos, sin):
            a, b = np.split(x, 2, -1)
            return x * cos + np.concatenate([-b, a], -1) * sin

        yield Case((d.floats(*shape), d.floats(*shape[-2:]), d.floats(*shape[-2:])), each)
