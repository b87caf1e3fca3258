"""Convolutions as functions that create their filters: `static.nn.conv2d` and its kin."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Normal
from minipd.ops.geometry import channels_last, per_axis
from minipd.static.nn.making import activated, bias, check_rank, known, owner_of, weight

__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]


def conv2d(input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
           act: str | None = None, name: str | None = None, data_format: str = "NCHW") -> Tensor:
    """`nn.functional.conv2d` with filters of its own, and `act` (a name in `nn.functional`) behind it.

    input [N, C, H, W] -> [N, num_filters, H', W'].  Parameters: filters [num_filters, C / groups, h, w], as `nn.Conv2D`
    begins, and a bias [num_filters] unless bias_attr is False.  use_cudnn: accepted, without effect.
    Raises: ValueError for another rank, for groups that do not divide the channels, or channels that are not known.

    >>> from minipd.static import Program, data, program_guard
    >>> main = Program()
    >>> with program_guard(main, Program()):
    ...     y = conv2d(data("image", [None, 3, 8, 8]), 4, 3, act="relu")
    >>> y.shape[1:], [list(p.shape) for p in main.all_parameters()]
    (paddle.Size([4, 6, 6]), [[4, 3, 3, 3], [4]])
    """
    return _convolve(F.conv2d, 2, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                     bias_attr, act, name, data_format)


def conv3d(input: Tensor, num_filters: int, filter_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
           groups: int | None = None, param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True,
           act: str | None = None, name: str | None = None, data_format: str = "NCDHW") -> Tensor:
    """`conv2d` of volumes: input [N, C, D, H, W] -> [N, num_filters, D', H', W']."""
    return _convolve(F.conv3d, 3, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr,
                     bias_attr, act, name, data_format)


def conv2d_transpose(input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None,
                     padding: Any = 0, stride: Any = 1, dilation: Any = 1, groups: int | None = None,
                     param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCHW") -> Tensor:
    """`nn.functional.conv2d_transpose` with filters of its own, and `act` behind it.

    input [N, C, H, W] -> [N, num_filters, H', W'].  Parameters: filters [C, num_filters / groups, h, w] and a bias.
    filter_size: None for the one that gives output_size, which must be numbers then, as must be the padding and the
    input's size.   use_cudnn: accepted, without effect.
    """
    return _spread(F.conv2d_transpose, 2, input, num_filters, output_size, filter_size, padding, stride, dilation,
                   groups, param_attr, bias_attr, act, name, data_format)


def conv3d_transpose(input: Tensor, num_filters: int, output_size: Any = None, filter_size: Any = None,
                     padding: Any = 0, stride: Any = 1, dilation: Any = 1, groups: int | None = None,
                     param_attr: Any = None, bias_attr: Any = None, use_cudnn: bool = True, act: str | None = None,
                     name: str | None = None, data_format: str = "NCDHW") -> Tensor:
    """`conv2d_transpose` of volumes: input [N, C, D, H, W] -> [N, num_filters, D', H', W']."""
    return _spread(F.conv3d_transpose, 3, input, num_filters, output_size, filter_size, padding, stride, dilation,
                   groups, param_attr, bias_attr, act, name, data_format)


def _convolve(function: Any, n: int, x: Tensor, num_filters: int, filter_size: Any, stride: Any, padding: Any,
              dilation: Any, groups: int | None, param_attr: Any, bias_attr: Any, act: str | None, name: str | None,
              data_format: str) -> Tensor:
    what = f"conv{n}d"
    channels, groups = _channels(what, n, x, num_filters, groups, data_format)
    sizes = per_axis(what, "filter_size", filter_size, n)
    owner = owner_of(what, name)
    first = Normal(0.0, math.sqrt(2.0 / (channels * math.prod(sizes))))
    w = weight(owner, [num_filters, channels // groups, *sizes], x.dtype, param_attr, first)
    out = function(x, w, bias(owner, [num_filters], x.dtype, bias_attr), stride=stride, padding=padding,
                   dilation=dilation, groups=groups, data_format=data_format)
    return activated(what, out, act)


def _spread(function: Any, n: int, x: Tensor, num_filters: int, output_size: Any, filter_size: Any, padding: Any,
            stride: Any, dilation: Any, groups: int | None, param_attr: Any, bias_attr: Any, act: str | None,
            name: str | None, data_format: str) -> Tensor:
    what = f"conv{n}d_transpose"
    channels, groups = _channels(what, n, x, num_filters, groups, data_format)
    if filter_size is None:
        first = 1 if channels_last(what, data_format, n) else 2
        inside = [known(what, x, first + i) for i in range(n)]
        filter_size = _filter_for(what, n, inside, output_size, padding, stride, dilation)
    sizes = per_axis(what, "filter_size", filter_size, n)
    owner = owner_of(what, name)
    w = weight(owner, [channels, num_filters // groups, *sizes], x.dtype, param_attr)
    out = function(x, w, bias(owner, [num_filters], x.dtype, bias_attr), stride=stride, padding=padding,
                   dilation=dilation, groups=groups, output_size=output_size, data_format=data_format)
    return activated(what, out, act)


def _channels(what: str, n: int, x: Tensor, num_filters: int, groups: int | None,
              data_format: str) -> tuple[int, int]:
    """(the input's channels, the number of groups)"""
    check_rank(what, x, n + 2)
    channels = known(what, x, -1 if channels_last(what, data_format, n) else 1)
    groups = 1 if groups is None else groups
    if num_filters < 1 or groups < 1 or channels % groups or num_filters % groups:
        raise ValueError(f"{what}: expected num_filters of at least 1, and groups that divide it and the {channels} "
                         f"channels, got num_filters={num_filters} and groups={groups}")
    return channels, groups


def _filter_for(what: str, n: int, inside: list[int], output_size: Any, padding: Any, stride: Any,
                dilation: Any) -> list[int]:
    """The filter with which a transposed convolution of an input of the sizes `inside` has output_size."""
    if output_size is None or isinstance(padding, str):
        raise ValueError(f"{what}: expected filter_size, or an output_size and padding in numbers that tell it, got "
                         f"output_size={output_size} and padding={padding!r}")
    sizes = zip(inside, per_axis(what, "output_size", output_size, n), per_axis(what, "padding", padding, n, least=0),
                per_axis(what, "stride", stride, n), per_axis(what, "dilation", dilation, n), strict=True)
    return [(o - (i - 1) * s + 2 * p - 1) // d + 1 for i, o, p, s, d in sizes]
