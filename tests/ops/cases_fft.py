"""Cases of Fourier transforms and of frames of a signal.  The wanted values are the sums of the definition."""

import numpy as np

from tests.ops.case import Case, cases

NORMS = ("backward", "forward", "ortho")


def summed(x, axis, normalization, forward):
    """The transform along one axis, by its matrix."""
    n = x.shape[axis]
    k = np.arange(n)
    w = np.exp((-2j if forward else 2j) * np.pi * np.outer(k, k) / n)
    factor = {"ortho": n**-0.5, "forward": 1 / n if forward else 1.0, "backward": 1.0 if forward else 1 / n}
    return np.moveaxis(np.tensordot(w, x, (1, axis)), 0, axis) * factor[normalization]


def whole(x, axes, normalization="backward", forward=True):
    for axis in axes:
        x = summed(x, axis, normalization, forward)
    return x


def first(x, axis, n):
    return x[(slice(None),) * axis + (slice(n),)]


@cases("fft_c2c")
def _(d):
    for norm in NORMS:
        yield Case((d.complexes(5),), whole, {"axes": (0,), "normalization": norm, "forward": norm != "forward"})
    yield Case((d.complexes(2, 1, 3),), whole, {"axes": (2, 0)})
    yield Case((d.complexes(3, 2, 0),), whole, {"axes": (0, 1), "forward": False})


@cases("fft_r2c", "wide")
def _(d):
    def want(x, axes, onesided=True, **attrs):
        out = whole(x, axes, **attrs)
        return first(out, axes[-1], x.shape[axes[-1]] // 2 + 1) if onesided else out

    for n in (1, 2, 5, 6):
        yield Case((d.floats(n),), want, {"axes": (0,), "normalization": NORMS[n % 3], "forward": n < 3},
                   fixed=((0, 0),))
    yield Case((d.floats(3, 2, 4),), want, {"axes": (0, 2)}, fixed=((0, 0), (0, 2)))
    yield Case((d.floats(4, 3),), want, {"axes": (1, 0), "onesided": False}, fixed=((0, 0), (0, 1)))


@cases("fft_c2r")
def _(d):
    def want(x, axes, last_dim_size, **attrs):
        for axis in axes[:-1]:
            x = summed(x, axis, attrs.get("normalization", "backward"), attrs.get("forward", True))
        axis, n = axes[-1], last_dim_size
        k = np.arange(n)                        # element k > n / 2 is the conjugate of element n - k
        full = np.take(x, np.minimum(k, n - k), axis)
        bent = np.moveaxis(np.moveaxis(full, axis, -1).copy(), -1, axis)
        last = np.moveaxis(bent, axis, -1)
        last[..., k > n / 2] = last[..., k > n / 2].conj()
        last[..., (k == 0) | (2 * k == n)] = last[..., (k == 0) | (2 * k == n)].real
        return whole(bent, axes[-1:], **attrs).real

    for n in (1, 2, 5, 6):
        yield Case((d.complexes(n // 2 + 1),), want, {"axes": (0,), "last_dim_size": n, "normalization": NORMS[n % 3],
                                                      "forward": n < 3}, fixed=((0, 0),))
    yield Case((d.complexes(2, 3, 3),), want, {"axes": (1, 2), "last_dim_size": 4}, fixed=((0, 1), (0, 2)))
    yield Case((d.complexes(3, 2),), want, {"axes": (1, 0), "last_dim_size": 5}, fixed=((0, 0), (0, 1)))


def framed(x, frame_length, hop_length):
    starts = range(0, x.shape[-1] - frame_length + 1, hop_length)
    return np.stack([x[..., s:s + frame_length] for s in starts], -1)


@cases("frame", "any")
def _(d):
    for n, length, hop in ((7, 3, 2), (8, 3, 2), (6, 2, 3), (4, 4, 1)):
        yield Case((d.floats(2, n),), framed, {"frame_length": length, "hop_length": hop}, fixed=((0, 1),))
    yield Case((d.complexes(5),), framed, {"frame_length": 2, "hop_length": 1}, fixed=((0, 0),))


@cases("overlap_add")
def _(d):
    def want(x, hop_length):
        *lead, length, frames = x.shape
        out = np.zeros((*lead, (frames - 1) * hop_length + length), x.dtype)
        for j in range(frames):
            for i in range(length):
                out[..., j * hop_length + i] += x[..., i, j]
        return out

    for length, frames, hop in ((3, 4, 2), (2, 3, 3), (5, 2, 1), (1, 1, 1)):
        yield Case((d.floats(2, length, frames),), want, {"hop_length": hop}, fixed=((0, 1), (0, 2)))
