"""Pooling over windows that slide: maxima, averages, norms; and back."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.tensor import Tensor
from minipd.ops.geometry import back, channels_last, first, pairs, per_axis, spatial
from minipd.ops.math import pow
from minipd.ops.pooling import MAX_POOLS, POOLS
from minipd.ops.shapes import require_floating
from minipd.ops.unpooling import Unpool

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "max_pool1d", "max_pool2d", "max_pool3d",
           "max_unpool1d", "max_unpool2d", "max_unpool3d"]


# ----------------------------------------------------------------------------------------------------- maxima
def max_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
               ceil_mode: bool = False, name: str | None = None) -> Any:
    """The largest element of every window: x [N, C, L] -> [N, C, L'].  For the rest see max_pool2d.

    >>> from minipd.ops.creation import to_tensor
    >>> [t.tolist() for t in max_pool1d(to_tensor([[[1.0, 3.0, 2.0, 2.0]]]), 2, return_mask=True)]
    [[[[3.0, 2.0]]], [[[1, 2]]]]
    """
    return _max_pool("max_pool1d", 1, x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
               ceil_mode: bool = False, data_format: str = "NCHW", name: str | None = None) -> Any:
    """The largest element of every window: x [N, C, H, W] ("NHWC": channels last) -> [N, C, H', W'].

    H' = (H + padding - kernel_size) // stride + 1, with ceil_mode rounded up: the last window may reach beyond x.
    stride: kernel_size unless given.  padding: as conv2d's; it is never the largest.  A window of padding only gives
    the lowest number, and position -1.
    return_mask: (result, positions): int32, row-major in [H, W], of the first of equal ones.
    Raises: ValueError for a window larger than the padded image.

    >>> from minipd.ops.creation import arange
    >>> max_pool2d(arange(16.0).reshape([1, 1, 4, 4]), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """
    return _max_pool("max_pool2d", 2, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def max_pool3d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
               ceil_mode: bool = False, data_format: str = "NCDHW", name: str | None = None) -> Any:
    """max_pool2d in three spatial dimensions."""
    return _max_pool("max_pool3d", 3, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format)


def _max_pool(what: str, n: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, return_mask: bool,
              ceil_mode: bool, data_format: str) -> Any:
    x, last, windows = _windows(what, n, x, kernel_size, stride, padding, ceil_mode, data_format)
    out, mask = MAX_POOLS[x.ndim - 2](x, **windows)
    out, mask = (_without(t, n, last) for t in (out, mask))
    return (out, mask) if return_mask else out


# --------------------------------------------------------------------------------------------------- averages
def avg_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, exclusive: bool = True,
               ceil_mode: bool = False, name: str | None = None) -> Tensor:
    """The average of every window: x [N, C, L] -> [N, C, L'].  For the rest see avg_pool2d."""
    return _avg_pool("avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, exclusive, None, "NCL")


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               exclusive: bool = True, divisor_override: float | None = None, data_format: str = "NCHW",
               name: str | None = None) -> Tensor:
    """The average of every window: x [N, C, H, W] ("NHWC": channels last) -> [N, C, H', W'], sized as max_pool2d's.

    exclusive: zeros of the padding do not count among the elements (a window of padding only gives NaN).
    divisor_override: divide by this instead of the window's size; it rescales the average, as in Paddle, so that a
    window that is not full is divided by its share of it.
    Raises: ValueError for a window larger than the padded image, or a divisor_override of 0.

    >>> from minipd.ops.creation import arange
    >>> avg_pool2d(arange(16.0).reshape([1, 1, 4, 4]), 2).tolist()
    [[[[2.5, 4.5], [10.5, 12.5]]]]
    """
    return _avg_pool("avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override,
                     data_format)


def avg_pool3d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               exclusive: bool = True, divisor_override: float | None = None, data_format: str = "NCDHW",
               name: str | None = None) -> Tensor:
    """avg_pool2d in three spatial dimensions."""
    return _avg_pool("avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, exclusive, divisor_override,
                     data_format)


def _avg_pool(what: str, n: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
              exclusive: bool, divisor_override: Any, data_format: str) -> Tensor:
    require_floating(what, x.payload)
    x, last, windows = _windows(what, n, x, kernel_size, stride, padding, ceil_mode, data_format)
    out = POOLS[x.ndim - 2](x, **windows, exclusive=bool(exclusive))
    if divisor_override is not None:
        if not divisor_override:
            raise ValueError(f"{what}: expected a divisor_override other than 0")
        out = out * (math.prod(windows["kernel_size"]) / divisor_override)
    return _without(out, n, last)


# ------------------------------------------------------------------------------------------------------ norms
def lp_pool1d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
              ceil_mode: bool = False, data_format: str = "NCL", name: str | None = None) -> Tensor:
    """(sum of x ** norm_type over every window) ** (1 / norm_type): x [N, C, L].  For the rest see lp_pool2d.

    >>> from minipd.ops.creation import to_tensor
    >>> lp_pool1d(to_tensor([[[3.0, 4.0]]]), 2, 2).tolist()
    [[[5.0]]]
    """
    return _lp_pool("lp_pool1d", 1, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)


def lp_pool2d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
              ceil_mode: bool = False, data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """(sum of x ** norm_type over every window) ** (1 / norm_type): x [N, C, H, W] ("NHWC": channels last).

    norm_type: float("inf") is max pooling.  Elements enter as they are: an odd or broken norm_type of negative ones is
    NaN, or not a norm.
    Raises: ValueError for a norm_type of 0.
    """
    return _lp_pool("lp_pool2d", 2, x, norm_type, kernel_size, stride, padding, ceil_mode, data_format)


def _lp_pool(what: str, n: int, x: Tensor, norm_type: float, kernel_size: Any, stride: Any, padding: Any,
             ceil_mode: bool, data_format: str) -> Tensor:
    require_floating(what, x.payload)
    p = float(norm_type)
    if p == 0:
        raise ValueError(f"{what}: expected a norm_type other than 0")
    if p == math.inf:
        return _max_pool(what, n, x, kernel_size, stride, padding, False, ceil_mode, data_format)
    x, last, windows = _windows(what, n, x, kernel_size, stride, padding, ceil_mode, data_format)
    total = POOLS[x.ndim - 2](pow(x, p), **windows, pooling_type="sum")
    return _without(pow(total, 1 / p), n, last)


# ------------------------------------------------------------------------------------------------------- back
def max_unpool1d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 data_format: str = "NCL", output_size: Any = None, name: str | None = None) -> Tensor:
    """The opposite of max_pool1d: x [N, C, L] at the positions `indices` of zeros [N, C, L'].  See max_unpool2d."""
    return _unpool("max_unpool1d", 1, x, indices, kernel_size, stride, padding, data_format, output_size)


def max_unpool2d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 data_format: str = "NCHW", output_size: Any = None, name: str | None = None) -> Tensor:
    """The opposite of max_pool2d: x [N, C, H, W] at the positions `indices` (its mask) of zeros [N, C, H', W'].

    H' = (H - 1) * stride - 2 * padding + kernel_size, or what output_size says: [H', W'], or all four sizes.  Of equal
    positions (windows that overlap) one counts.
    Raises: ValueError for positions outside of the result.

    >>> from minipd.ops.creation import to_tensor
    >>> max_unpool2d(to_tensor([[[[7.0]]]]), to_tensor([[[[2]]]]), 2).tolist()
    [[[[0.0, 0.0], [7.0, 0.0]]]]
    """
    return _unpool("max_unpool2d", 2, x, indices, kernel_size, stride, padding, data_format, output_size)


def max_unpool3d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 data_format: str = "NCDHW", output_size: Any = None, name: str | None = None) -> Tensor:
    """max_unpool2d in three spatial dimensions."""
    return _unpool("max_unpool3d", 3, x, indices, kernel_size, stride, padding, data_format, output_size)


def _unpool(what: str, n: int, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any,
            data_format: str, output_size: Any) -> Tensor:
    spatial(what, x, n)
    if channels_last(what, data_format, n):
        raise ValueError(f"{what}: expected channels first, got data_format {data_format!r}")
    if indices.payload.dtype not in dtypes.INTS:
        raise TypeError(f"{what}: expected int indices, got {indices.dtype.name}")
    kernel = per_axis(what, "kernel_size", kernel_size, n)
    strides = kernel if stride is None else per_axis(what, "stride", stride, n)
    if output_size is not None:
        listed = list(output_size)
        sizes = per_axis(what, "output_size", listed[2:] if len(listed) == n + 2 else listed, n)
    else:
        paddings = per_axis(what, "padding", padding, n, least=0)
        sizes = tuple((d - 1) * s - 2 * p + k for d, s, p, k in zip(
            x.payload.shape[2:], strides, paddings, kernel, strict=True))
    return Unpool(x, indices, output_size=sizes)


# --------------------------------------------------------------------------------------------------- arguments
def _windows(what: str, n: int, x: Tensor, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
             data_format: str) -> tuple[Tensor, bool, dict]:
    """(x in the rows' form, whether its channels came last, attributes) from what a user may write."""
    spatial(what, x, n)
    last = channels_last(what, data_format, n)
    x = first(x, last)
    kernel = per_axis(what, "kernel_size", kernel_size, n)
    strides = kernel if stride is None else per_axis(what, "stride", stride, n)
    paddings = pairs(what, padding, x.payload.shape[2:], kernel, strides, last)
    if n == 1:
        x, kernel, strides, paddings = x.unsqueeze(2), (1, *kernel), (1, *strides), (0, 0, *paddings)
    return x, last, dict(kernel_size=kernel, strides=strides, paddings=paddings, ceil_mode=bool(ceil_mode))


def _without(out: Tensor, n: int, last: bool) -> Tensor:
    """Without the dimension that one-dimensional windows were given, in the format of the input."""
    return back(out.squeeze(2) if n == 1 else out, last)
