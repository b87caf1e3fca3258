"""`paddle.fft`: discrete Fourier transforms, over one axis, two, or several.

| | one axis | two | several |
| --- | --- | --- | --- |
| complex or real to complex | `fft`, `ifft` | `fft2`, `ifft2` | `fftn`, `ifftn` |
| real to the half that determines the rest | `rfft` | `rfft2` | `rfftn` |
| that half to real | `irfft` | `irfft2` | `irfftn` |
| the same two with the directions exchanged | `hfft`, `ihfft` | `hfft2`, `ihfft2` | `hfftn`, `ihfftn` |

n, s: how many elements of each axis are transformed (more than there are: zeros follow).  norm: which direction divides
by the number of elements, "backward", "forward", or "ortho": both by its root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import arange
from minipd.ops.fft import OPPOSITE, FftC2C, FftC2R, FftR2C, resized
from minipd.ops.joining import concat
from minipd.ops.making import asked_for, into
from minipd.ops.shapes import normalize_axes, normalize_axis
from minipd.ops.slicing import slice

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
           "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]


# ------------------------------------------------------------------------------------------------ the three kinds
def _c2c(what: str, x: Tensor, s: Any, axes: Any, norm: str, forward: bool, out: Tensor | None) -> Tensor:
    """A transform to complex numbers, all of them."""
    axes, sizes = _part(what, x, s, axes, norm)
    x = _fitted(_floating(x), axes, sizes)
    attrs = {"axes": axes, "normalization": norm, "forward": forward}
    return into(out, FftC2C(x, **attrs) if x.is_complex() else FftR2C(x, **attrs, onesided=False))


def _r2c(what: str, x: Tensor, s: Any, axes: Any, norm: str, forward: bool, out: Tensor | None) -> Tensor:
    """A transform of real numbers, its first half."""
    axes, sizes = _part(what, x, s, axes, norm)
    if x.is_complex():
        raise TypeError(f"{what}: expected a real tensor, got {describe(x.payload)}; fft transforms complex ones")
    x = _fitted(_floating(x), axes, sizes)
    return into(out, FftR2C(x, axes=axes, normalization=norm, forward=forward))


def _c2r(what: str, x: Tensor, s: Any, axes: Any, norm: str, forward: bool, out: Tensor | None) -> Tensor:
    """A transform to real numbers, from the first half of what determines them."""
    axes, sizes = _part(what, x, s, axes, norm)
    n = sizes[-1] if s is not None else 2 * (sizes[-1] - 1)
    if n < 1:
        raise ValueError(f"{what}: expected at least 1 element in the result along axis {axes[-1]}, got {n}; give its "
                         "size, or a longer operand")
    x = _fitted(_floating(x), axes, [*sizes[:-1], n // 2 + 1])
    x = x if x.is_complex() else cast(x, dtypes.complex_of(x.payload.dtype))
    return into(out, FftC2R(x, axes=axes, last_dim_size=n, normalization=norm, forward=forward))


def _part(what: str, x: Tensor, s: Any, axes: Any, norm: str) -> tuple[tuple[int, ...], list]:
    """The axes to transform, from the front, and how many elements of each."""
    if norm not in OPPOSITE:
        raise ValueError(f"{what}: expected norm to be 'backward', 'forward' or 'ortho', got {norm!r}")
    if x.ndim == 0:
        raise ValueError(f"{what}: expected a tensor of at least 1 dimension, got {describe(x.payload)}")
    for name, given in (("axes", axes), ("s", s)):
        if isinstance(given, (int, str)):
            raise TypeError(f"{what}: expected {name} to be a list of ints, got {given!r}")
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    found = tuple(normalize_axis(what, a, x.ndim) for a in axes)
    if len(set(found)) < len(found) or not found:
        raise ValueError(f"{what}: expected one or more different axes, got {list(axes)}")
    sizes = [x.payload.shape[a] for a in found] if s is None else list(s)
    if len(sizes) != len(found):
        raise ValueError(f"{what}: expected a size for each of the axes {list(found)}, got {sizes}")
    for axis, n in zip(found, sizes, strict=True):
        if isinstance(n, int) and n < 1:
            raise ValueError(f"{what}: expected at least 1 element along axis {axis} of {describe(x.payload)}, got {n}")
    return found, sizes


def _fitted(x: Tensor, axes: Sequence[int], sizes: Sequence[int]) -> Tensor:
    for axis, n in zip(axes, sizes, strict=True):
        x = resized(x, axis, n)
    return x


def _floating(x: Tensor) -> Tensor:
    return x if x.payload.dtype in dtypes.INEXACT else cast(x, dtypes.get_default_dtype_np())


def _one(n: int | None) -> list[int] | None:
    return None if n is None else [n]


def _two(what: str, s: Any, axes: Any) -> Any:
    """The axes of a transform over two."""
    for name, given in (("axes", axes), ("s", s)):
        if given is not None and not isinstance(given, (list, tuple)):
            raise TypeError(f"{what}: expected {name} to be a list of two ints, got {given!r}")
    if len(axes) != 2 or s is not None and len(s) != 2:
        raise ValueError(f"{what}: expected two axes and, if any, two sizes, got axes={axes}, s={s}")
    return axes


# ------------------------------------------------------------------------------------------------ one axis
def fft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """The transform of complex or real x along `axis`: complex, n elements.

    Raises: ValueError for an axis that x lacks, n < 1, or another norm (as all transforms here).

    >>> from minipd.ops.creation import to_tensor
    >>> fft(to_tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    """
    return _c2c("fft", x, _one(n), [axis], norm, True, out)


def ifft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """The inverse of `fft`."""
    return _c2c("ifft", x, _one(n), [axis], norm, False, out)


def rfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """The first n // 2 + 1 elements of the transform of real x along `axis`; the others are their conjugates.

    >>> from minipd.ops.creation import to_tensor
    >>> rfft(to_tensor([1.0, 2.0, 3.0, 4.0])).tolist()
    [(10+0j), (-2+2j), (-2+0j)]
    """
    return _r2c("rfft", x, _one(n), [axis], norm, True, out)


def irfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft`: n real elements (by default twice as many as x has, less two)."""
    return _c2r("irfft", x, _one(n), [axis], norm, False, out)


def hfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """The real transform, n elements, of a Hermitian x of which the first n // 2 + 1 elements are given."""
    return _c2r("hfft", x, _one(n), [axis], norm, True, out)


def ihfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft`: of real x, n // 2 + 1 complex elements."""
    return _r2c("ihfft", x, _one(n), [axis], norm, False, out)


# ------------------------------------------------------------------------------------------------ several axes
def fftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """`fft` along each of `axes` (None: the last len(s), or all)."""
    return _c2c("fftn", x, s, axes, norm, True, out)


def ifftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """The inverse of `fftn`."""
    return _c2c("ifftn", x, s, axes, norm, False, out)


def rfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """`rfft` along the last of `axes`, then `fft` along the others."""
    return _r2c("rfftn", x, s, axes, norm, True, out)


def irfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """The inverse of `rfftn`."""
    return _c2r("irfftn", x, s, axes, norm, False, out)


def hfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """`fft` along all of `axes` but the last, then `hfft` along that."""
    return _c2r("hfftn", x, s, axes, norm, True, out)


def ihfftn(x: Tensor, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """The inverse of `hfftn`."""
    return _r2c("ihfftn", x, s, axes, norm, False, out)


def fft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """`fftn` over two axes."""
    return _c2c("fft2", x, s, _two("fft2", s, axes), norm, True, out)


def ifft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """`ifftn` over two axes."""
    return _c2c("ifft2", x, s, _two("ifft2", s, axes), norm, False, out)


def rfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """`rfftn` over two axes."""
    return _r2c("rfft2", x, s, _two("rfft2", s, axes), norm, True, out)


def irfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """`irfftn` over two axes."""
    return _c2r("irfft2", x, s, _two("irfft2", s, axes), norm, False, out)


def hfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """`hfftn` over two axes."""
    return _c2r("hfft2", x, s, _two("hfft2", s, axes), norm, True, out)


def ihfft2(x: Tensor, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None, *,
           out: Tensor | None = None) -> Tensor:
    """`ihfftn` over two axes."""
    return _r2c("ihfft2", x, s, _two("ihfft2", s, axes), norm, False, out)


# ------------------------------------------------------------------------------------------------ frequencies
def fftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None, *, out: Tensor | None = None,
            device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequency of each element of a transform of n samples taken at intervals d: 0, 1, ..., -2, -1 over n d.

    Raises: ValueError unless n > 0 and d is not 0.

    >>> fftfreq(4, 0.5).tolist()
    [0.0, 0.5, -1.0, -0.5]
    """
    made = _frequencies("fftfreq", n, d, [arange((n + 1) // 2), arange(-(n // 2), 0)], dtype)
    return asked_for(into(out, made), "fftfreq", device, requires_grad)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None, *, out: Tensor | None = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequency of each element of the first half of a transform: 0, 1, ..., n // 2 over n d.

    >>> rfftfreq(4, 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    made = _frequencies("rfftfreq", n, d, [arange(n // 2 + 1)], dtype)
    return asked_for(into(out, made), "rfftfreq", device, requires_grad)


def _frequencies(what: str, n: int, d: float, counts: list[Tensor], dtype: Any) -> Tensor:
    if n < 1 or d == 0:
        raise ValueError(f"{what}: expected n > 0 samples at intervals d that are not 0, got n={n}, d={d}")
    dtype = dtypes.get_default_dtype_np() if dtype is None else dtypes.to_np(dtype)
    return cast(concat(counts), dtype) * (1.0 / (n * d))


def fftshift(x: Tensor, axes: Any = None, name: str | None = None) -> Tensor:
    """The elements with frequency 0 moved from the front of `axes` (None: all) to the middle.

    >>> fftshift(fftfreq(5)).tolist()[2]
    0.0
    """
    return _rolled("fftshift", x, axes, lambda n: n - n // 2)


def ifftshift(x: Tensor, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _rolled("ifftshift", x, axes, lambda n: n // 2)


def _rolled(what: str, x: Tensor, axes: Any, front: Callable[[int], int]) -> Tensor:
    """Along each axis of size n, the last n - front(n) elements first."""
    for axis in normalize_axes(what, axes, x.ndim):
        at = front(x.payload.shape[axis])
        x = concat([slice(x, [axis], [at], [x.payload.shape[axis]]), slice(x, [axis], [0], [at])], axis)
    return x
