"""Discrete Fourier transforms over axes: complex to complex, real to complex, and back to real.

With w = e^(-2 pi i / n), forward: out[k] = sum over j of x[j] w^(jk); backward: w^(-jk).  `normalization` says which of
the two divides by n, the number of elements along the axes ("forward" or "backward"), or that both divide by its root
("ortho").  (Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series, 1965.)

A transform is linear and its matrix symmetric: the transpose, which a gradient rule is, is the same transform again.
"""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.complex import Real
from minipd.ops.creation import Full
from minipd.ops.joining import Concat
from minipd.ops.shapes import require_floating
from minipd.ops.slicing import slice

__all__: list[str] = []

#: A transform backwards is the conjugate of one forwards that divides where the other does not.
OPPOSITE = {"forward": "backward", "backward": "forward", "ortho": "ortho"}


@op("fft_c2c", Trait.ALLOCATES)
class FftC2C:
    """The transform of complex x over `axes`."""

    def infer_meta(x, *, axes, normalization="backward", forward=True):
        if x.dtype not in dtypes.COMPLEX:
            raise TypeError(f"fft_c2c: expected a complex tensor, got {describe(x)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, axes, normalization="backward", forward=True):
        return _transform(xp, x, axes, normalization, forward)

    def vjp_x(g, axes, normalization, forward):
        return FftC2C(g, axes=axes, normalization=normalization, forward=forward)


@op("fft_r2c", Trait.ALLOCATES)
class FftR2C:
    """The transform of real x over `axes`.  onesided: of the last of them only the first n // 2 + 1 elements, which
    determine the others: out[n - k] is the conjugate of out[k]."""

    def infer_meta(x, *, axes, normalization="backward", forward=True, onesided=True):
        require_floating("fft_r2c", x)
        shape = list(x.shape)
        if onesided:
            shape[axes[-1]] = _known("fft_r2c", x, axes[-1]) // 2 + 1
        return Meta(tuple(shape), dtypes.complex_of(x.dtype))

    def kernel(xp, x, *, axes, normalization="backward", forward=True, onesided=True):
        *others, last = axes
        half = xp.fft.rfft(x, axis=last, norm=normalization if forward else OPPOSITE[normalization])
        if not forward:                     # elements 0 and n / 2 are real
            pairs = xp.moveaxis(half, last, -1)[..., 1:(x.shape[last] + 1) // 2]
            xp.conj(pairs, out=pairs)
        if others:
            half = _transform(xp, half, others, normalization, forward)
        return half if onesided else _whole(xp, half, others, last, x.shape[last])

    def vjp_x(g, x: Meta, axes, normalization, forward, onesided):
        if onesided:                        # x has no part in what was left out
            g = resized(g, axes[-1], x.shape[axes[-1]])
        return Real(FftC2C(g, axes=axes, normalization=normalization, forward=forward))


@op("fft_c2r", Trait.ALLOCATES)
class FftC2R:
    """The real transform of complex x over `axes`, of which x holds the first n // 2 + 1 elements of the last, for
    n = `last_dim_size`.  What cannot be part of a real transform, the imaginary part of element 0, is not read."""

    def infer_meta(x, *, axes, last_dim_size, normalization="backward", forward=True):
        if x.dtype not in dtypes.COMPLEX:
            raise TypeError(f"fft_c2r: expected a complex tensor, got {describe(x)}")
        if _known("fft_c2r", x, axes[-1]) != last_dim_size // 2 + 1:
            raise ValueError(f"fft_c2r: expected {last_dim_size // 2 + 1} elements along axis {axes[-1]} for a result "
                             f"of {last_dim_size}, got {describe(x)}")
        return Meta(tuple(last_dim_size if i == axes[-1] else d for i, d in enumerate(x.shape)),
                    dtypes.real_of(x.dtype))

    def kernel(xp, x, *, axes, last_dim_size, normalization="backward", forward=True):
        if forward:
            x, normalization = xp.conj(x), OPPOSITE[normalization]
        sizes = [*(x.shape[a] for a in axes[:-1]), last_dim_size]
        return xp.fft.irfftn(x, s=sizes, axes=axes, norm=normalization)

    def vjp_x(g, axes, last_dim_size, normalization, forward):      # elements that stand for two count twice
        half = FftR2C(g, axes=axes, normalization=normalization, forward=forward)
        return half * _multiplicity(half, axes[-1], last_dim_size)


def _transform(xp: Any, x: Any, axes: tuple, normalization: str, forward: bool) -> Any:
    return (xp.fft.fftn if forward else xp.fft.ifftn)(x, axes=axes, norm=normalization)


def _whole(xp: Any, half: Any, others: list[int], last: int, n: int) -> Any:
    """All n elements along `last` of a real array's transform: element -k is the conjugate of element k, where -k is
    counted so along every axis."""
    rest = xp.conj(xp.flip(xp.take(half, range(1, n - half.shape[last] + 1), last), (*others, last)))
    return xp.concatenate([half, xp.roll(rest, 1, others) if others else rest], last)


def _known(what: str, x: Any, axis: int) -> int:
    if is_symbolic(x.shape[axis]):
        raise TypeError(f"{what}: the size of axis {axis} of {describe(x)} must be known while tracing, for half of it "
                        "is the size of the result; give n, or declare the size of the input")
    return x.shape[axis]


def _multiplicity(half: Tensor, axis: int, n: int) -> Tensor:
    """For how many elements of a whole transform of size n each of the first n // 2 + 1 stands, along `axis`: for two,
    but for the first, and for the middle one, which even sizes have."""
    middle = 1 - n % 2
    runs = [(1, 1.0), (n // 2 - middle, 2.0), (middle, 1.0)]
    counts = Concat(*[Full(shape=(size,), value=value, dtype=dtypes.real_of(half.payload.dtype))
                      for size, value in runs if size], axis=0)
    return counts.reshape([-1] + [1] * (half.ndim - 1 - axis))


def resized(x: Tensor, axis: int, n: int) -> Tensor:
    """x with n elements along `axis`: the first of them, or all and then zeros."""
    shape = x.payload.shape
    if n == shape[axis]:
        return x
    if n < shape[axis]:
        return slice(x, [axis], [0], [n])
    rest = Full(shape=(*shape[:axis], n - shape[axis], *shape[axis + 1:]), value=0, dtype=x.payload.dtype)
    return Concat(x, rest, axis=axis)
