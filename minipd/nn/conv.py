"""Convolutions and transposed convolutions as layers."""

from __future__ import annotations

import math
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Normal
from minipd.nn.layer import Layer
from minipd.ops.geometry import channels_last, per_axis

__all__ = ["Conv1D", "Conv1DTranspose", "Conv1d", "Conv2D", "Conv2DTranspose", "Conv2d", "Conv3D", "Conv3DTranspose",
           "Conv3d"]


class _Convolution(Layer):
    """What the layers of every rank share: the arguments, the parameters and how they print."""

    rank: int
    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
                 groups: int, weight_attr: Any, bias_attr: Any, data_format: str, padding_mode: str = "zeros",
                 output_padding: Any = 0, device: Any = None, dtype: Any = None):
        super().__init__(dtype=dtype)
        self.to(device)
        what, n = type(self).__name__, self.rank
        channels_last(what, data_format, n)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"{what}: expected padding_mode 'zeros', 'reflect', 'replicate' or 'circular', got "
                             f"{padding_mode!r}")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{what}: expected {name} that groups={groups} divides, got {channels}")
        self._in_channels, self._out_channels, self._groups = in_channels, out_channels, groups
        self._kernel_size = list(per_axis(what, "kernel_size", kernel_size, n))
        self._stride = list(per_axis(what, "stride", stride, n))
        self._dilation = list(per_axis(what, "dilation", dilation, n))
        self._padding, self._padding_mode, self._data_format = padding, padding_mode, data_format
        self.output_padding = output_padding
        outer, inner = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = self.create_parameter([outer, inner // groups, *self._kernel_size], weight_attr,
                                            default_initializer=self._first_weights())
        self.bias = self.create_parameter([out_channels], bias_attr, is_bias=True)

    def _first_weights(self) -> Any:
        """Paddle's: normally distributed with variance 2 / (in_channels * kernel); transposed, XavierUniform."""
        if self.transposed:
            return None
        return Normal(0.0, math.sqrt(2.0 / (self._in_channels * math.prod(self._kernel_size))))

    def extra_repr(self) -> str:
        shown = f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"
        ones = [1] * self.rank
        for name, value, usual in (("stride", self._stride, ones), ("padding", self._padding, 0),
                                   ("padding_mode", self._padding_mode, "zeros"),
                                   ("output_padding", self.output_padding, 0), ("dilation", self._dilation, ones),
                                   ("groups", self._groups, 1)):
            if value != usual:
                shown += f", {name}={value}"
        return f"{shown}, data_format={self._data_format}"

    def _convolve(self, function: Any, x: Tensor) -> Tensor:
        padding = self._padding
        if self._padding_mode != "zeros":
            sides = per_axis(type(self).__name__, "padding", padding, self.rank, least=0)
            x = F.pad(x, [p for p in reversed(sides) for _ in range(2)], self._padding_mode,
                      data_format=self._data_format)
            padding = 0
        return function(x, self.weight, self.bias, stride=self._stride, padding=padding, dilation=self._dilation,
                        groups=self._groups, data_format=self._data_format)

    def _spread(self, function: Any, x: Tensor, output_size: Any) -> Tensor:
        return function(x, self.weight, self.bias, stride=self._stride, padding=self._padding,
                        output_padding=0 if output_size is not None else self.output_padding, dilation=self._dilation,
                        groups=self._groups, output_size=output_size, data_format=self._data_format)


class Conv1D(_Convolution):
    """F.conv1d with filters of its own: x [N, in_channels, L] -> [N, out_channels, L'].  See Conv2D."""

    rank = 1

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, *, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None, weight_attr: Any = None, bias_attr: Any = None,
                 data_format: str = "NCL"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr if bias else False, data_format, padding_mode, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self._convolve(F.conv1d, x)


class Conv2D(_Convolution):
    """F.conv2d with filters of its own: x [N, in_channels, H, W] -> [N, out_channels, H', W'].

    weight [out_channels, in_channels / groups, h, w], bias [out_channels] (none with bias=False or bias_attr=False).
    padding_mode: what is around the image: "zeros", or "reflect", "replicate", "circular" (see F.pad).
    Raises: ValueError where groups does not divide the channels.

    >>> from minipd.ops.creation import ones
    >>> layer = Conv2D(4, 6, 3, padding=1)
    >>> layer(ones([2, 4, 8, 8])).shape, layer
    (paddle.Size([2, 6, 8, 8]), Conv2D(4, 6, kernel_size=[3, 3], padding=1, data_format=NCHW))
    """

    rank = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, *, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None, weight_attr: Any = None, bias_attr: Any = None,
                 data_format: str = "NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr if bias else False, data_format, padding_mode, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self._convolve(F.conv2d, x)


class Conv3D(_Convolution):
    """F.conv3d with filters of its own: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W'].  See Conv2D."""

    rank = 3

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1, *, bias: bool = True, padding_mode: str = "zeros",
                 device: Any = None, dtype: Any = None, weight_attr: Any = None, bias_attr: Any = None,
                 data_format: str = "NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr if bias else False, data_format, padding_mode, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return self._convolve(F.conv3d, x)


class Conv1DTranspose(_Convolution):
    """F.conv1d_transpose with filters of its own: x [N, in_channels, L] -> [N, out_channels, L'].  See
    Conv2DTranspose."""

    rank, transposed = 1, True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCL"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr, data_format, output_padding=output_padding)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return self._spread(F.conv1d_transpose, x, output_size)


class Conv2DTranspose(_Convolution):
    """F.conv2d_transpose with filters of its own: x [N, in_channels, H, W] -> [N, out_channels, H', W'].

    weight [in_channels, out_channels / groups, h, w], bias [out_channels] (none with bias_attr=False).  A call may name
    the output_size instead of the layer's output_padding.

    >>> from minipd.ops.creation import ones
    >>> Conv2DTranspose(4, 6, 2, stride=2)(ones([2, 4, 8, 8])).shape
    paddle.Size([2, 6, 16, 16])
    """

    rank, transposed = 2, True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, dilation: Any = 1, groups: int = 1, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr, data_format, output_padding=output_padding)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return self._spread(F.conv2d_transpose, x, output_size)


class Conv3DTranspose(_Convolution):
    """F.conv3d_transpose with filters of its own: x [N, in_channels, D, H, W] -> [N, out_channels, D', H', W'].  See
    Conv2DTranspose."""

    rank, transposed = 3, True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, dilation: Any = 1, groups: int = 1, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCDHW"):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, weight_attr,
                         bias_attr, data_format, output_padding=output_padding)

    def forward(self, x: Tensor, output_size: Any = None) -> Tensor:
        return self._spread(F.conv3d_transpose, x, output_size)


Conv1d, Conv2d, Conv3d = Conv1D, Conv2D, Conv3D
