"""Convolutions, and their transposes: what upsamples with learned filters."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.conv import TRANSPOSED, arguments, conv1d, conv2d, conv3d, finished, with_a_dimension
from minipd.ops.geometry import extent, first, pairs, per_axis

__all__ = ["conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]


def conv1d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1, output_size: Any = None,
                     data_format: str = "NCL", name: str | None = None) -> Tensor:
    """Every element of x spreads over a window, times the filter: the adjoint of conv1d.

    x [N, C, L] ("NLC": [N, L, C]), weight [C, O / groups, l], bias [O] -> [N, O, L'].  For the rest see
    conv2d_transpose.

    >>> from minipd.ops.creation import to_tensor
    >>> conv1d_transpose(to_tensor([[[1.0, 2.0]]]), to_tensor([[[1.0, 10.0]]]), stride=2).tolist()
    [[[1.0, 10.0, 2.0, 20.0]]]
    """
    return _convolve_back("conv1d_transpose", 1, x, weight, bias, stride, padding, output_padding, dilation, groups,
                          output_size, data_format)


def conv2d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, dilation: Any = 1, groups: int = 1, output_size: Any = None,
                     data_format: str = "NCHW", name: str | None = None) -> Tensor:
    """Every element of x spreads over a window, times the filter: the adjoint of conv2d.

    x [N, C, H, W] ("NHWC": channels last), weight [C, O / groups, h, w], bias [O] -> [N, O, H', W'] with
    H' = (H - 1) * stride - padding + dilation * (h - 1) + 1 + output_padding.

    Several sizes have a convolution with `stride` to H windows.  `output_padding`, below stride, chooses one by what it
    adds to the smallest, `output_size` by naming it.  padding: as conv2d's, cut off the result.
    Raises: ValueError for sizes that do not fit, or for both output_padding and output_size.

    >>> from minipd.ops.creation import ones
    >>> x, w = ones([1, 1, 2, 2]), ones([1, 1, 3, 3])
    >>> conv2d_transpose(x, w, stride=2).shape, conv2d_transpose(x, w, stride=2, output_size=[5, 6]).shape
    (paddle.Size([1, 1, 5, 5]), paddle.Size([1, 1, 5, 6]))
    """
    return _convolve_back("conv2d_transpose", 2, x, weight, bias, stride, padding, output_padding, dilation, groups,
                          output_size, data_format)


def conv3d_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
                     output_padding: Any = 0, groups: int = 1, dilation: Any = 1, output_size: Any = None,
                     data_format: str = "NCDHW", name: str | None = None) -> Tensor:
    """conv2d_transpose in three spatial dimensions: x [N, C, D, H, W], weight [C, O / groups, d, h, w].

    >>> from minipd.ops.creation import ones
    >>> conv3d_transpose(ones([1, 1, 2, 2, 2]), ones([1, 4, 2, 2, 2]), stride=2).shape
    paddle.Size([1, 4, 4, 4, 4])
    """
    return _convolve_back("conv3d_transpose", 3, x, weight, bias, stride, padding, output_padding, dilation, groups,
                          output_size, data_format)


def _convolve_back(what: str, n: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any,
                   output_padding: Any, dilation: Any, groups: int, output_size: Any, data_format: str) -> Tensor:
    """The transposed convolution over n spatial dimensions, from what a user may write."""
    last, strides, dilations, groups = arguments(what, n, x, weight, stride, dilation, groups, data_format)
    x = first(x, last)
    reach = tuple(map(extent, weight.payload.shape[2:], dilations))
    paddings = pairs(what, padding, x.payload.shape[2:], reach, strides, last)
    more = per_axis(what, "output_padding", output_padding, n, least=0)
    if output_size is not None:
        if any(more):
            raise ValueError(f"{what}: expected output_padding or output_size, got both: {output_padding!r} and "
                             f"{output_size!r}")
        wanted = per_axis(what, "output_size", output_size, n)
        smallest = tuple((d - 1) * s - b - a + r for d, s, b, a, r in zip(
            x.payload.shape[2:], strides, paddings[::2], paddings[1::2], reach, strict=True))
        more = tuple(w - least for w, least in zip(wanted, smallest, strict=True))
        if any(m < 0 or m >= s for m, s in zip(more, strides, strict=True)):
            largest = [least + s - 1 for least, s in zip(smallest, strides, strict=True)]
            raise ValueError(f"{what}: expected an output_size from {list(smallest)} to {largest} for x "
                             f"{describe(x.payload)} with stride {list(strides)}, got {list(wanted)}")
    if any(m >= s for m, s in zip(more, strides, strict=True)):
        raise ValueError(f"{what}: expected output_padding below stride {list(strides)}, got {list(more)}")
    attrs = dict(strides=strides, paddings=paddings, output_padding=more, dilations=dilations, groups=groups)
    if n == 1:
        out = TRANSPOSED[2](x.unsqueeze(2), weight.unsqueeze(2), **with_a_dimension(attrs)).squeeze(2)
    else:
        out = TRANSPOSED[n](x, weight, **attrs)
    return finished(what, out, bias, last)
