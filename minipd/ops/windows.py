"""Sliding windows in memory: all windows as the columns of a matrix, and back.   (im2col and col2im)

A convolution is a product with that matrix, its gradient with respect to the input a product that is added back window
by window.  One implementation serves any number of spatial dimensions.

The matrix repeats every element as often as windows meet it, so it is built for a few images at a time: `batches` says
how many, such that it stays near the processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minipd.framework.dim import prod

__all__: list[str] = []

#: bytes of the matrix of windows that is built at once: what a core's cache holds
AT_ONCE = 1 << 20


def batches(n: int, bytes_each: int) -> Iterator[Any]:
    """Slices of n images, each of about AT_ONCE bytes of windows, or of one image."""
    step = max(1, AT_ONCE // max(bytes_each, 1))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def padded(xp: Any, x: Any, paddings: tuple, value: Any = 0) -> Any:
    """x [N, C, *spatial] with its spatial dimensions padded; x itself where there is nothing to pad."""
    if not any(paddings):
        return x
    before, after = paddings[::2], paddings[1::2]
    shape = (*x.shape[:2], *(b + d + a for b, d, a in zip(before, x.shape[2:], after, strict=True)))
    out = xp.full(shape, value, x.dtype) if value else xp.zeros(shape, x.dtype)
    out[inside(x.shape[2:], paddings)] = x
    return out


def inside(sizes: tuple, paddings: tuple) -> tuple:
    """The index of the unpadded part in a padded array [*, *, *spatial]."""
    return (slice(None), slice(None), *(slice(b, b + d) for b, d in zip(paddings[::2], sizes, strict=True)))


def columns(xp: Any, x: Any, kernel: tuple, sizes: tuple, strides: tuple, dilations: tuple) -> Any:
    """Every window of x, as a view [C, *kernel, N, *sizes] that must not be written.

    x [N, C, *padded spatial]; sizes: how many windows there are along each spatial dimension.
    """
    image, channel, *steps = x.strides
    return xp.lib.stride_tricks.as_strided(
        x, (x.shape[1], *kernel, x.shape[0], *sizes),
        (channel, *(s * d for s, d in zip(steps, dilations, strict=True)),
         image, *(s * t for s, t in zip(steps, strides, strict=True))))


def add_columns(xp: Any, out: Any, columns: Any, paddings: tuple, strides: tuple, dilations: tuple) -> None:
    """The adjoint of `columns`: each window's elements are added where it took them from.

    out [N, C, *spatial], overwritten; columns [C, *kernel, N, *sizes].  What falls into the padding is dropped.
    """
    n = out.ndim - 2
    kernel, sizes = columns.shape[1:1 + n], columns.shape[2 + n:]
    shape = [b + d + a for b, d, a in zip(paddings[::2], out.shape[2:], paddings[1::2], strict=True)]
    total = xp.zeros((out.shape[1], out.shape[0], *shape), columns.dtype)
    for offset in xp.ndindex(*kernel):
        where = tuple(slice(o * d, o * d + (m - 1) * s + 1, s)
                      for o, d, m, s in zip(offset, dilations, sizes, strides, strict=True))
        total[(slice(None), slice(None), *where)] += columns[(slice(None), *offset)]
    out[...] = total[inside(out.shape[2:], paddings)].swapaxes(0, 1)


def window_bytes(channels: int, kernel: tuple, sizes: tuple, itemsize: int) -> Any:
    """What the matrix of windows takes for one image."""
    return channels * prod(kernel) * prod(sizes) * itemsize
