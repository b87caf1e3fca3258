"""Images in another size, and rearranged, as layers."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.layer import Layer

__all__ = ["ChannelShuffle", "Fold", "PixelShuffle", "PixelUnshuffle", "Unfold", "Upsample", "UpsamplingBilinear2D",
           "UpsamplingBilinear2d", "UpsamplingNearest2D", "UpsamplingNearest2d"]


class Upsample(Layer):
    """F.interpolate as a layer.

    >>> from minipd.ops.creation import ones
    >>> Upsample(scale_factor=2, mode="bilinear")(ones([1, 1, 2, 3])).shape
    paddle.Size([1, 1, 4, 6])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False,
                 align_mode: int = 0, data_format: str | None = None, recompute_scale_factor: bool | None = None,
                 name: str | None = None):
        super().__init__()
        self.size, self.scale_factor, self.mode = size, scale_factor, mode.lower()
        self.align_corners, self.align_mode, self.data_format = align_corners, align_mode, data_format
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.align_mode,
                             self.data_format, self.recompute_scale_factor)

    def extra_repr(self) -> str:
        return (f"{_target(self)}, mode={self.mode}, align_corners={self.align_corners}, align_mode={self.align_mode}, "
                f"data_format={self.data_format}")


def _target(layer: Any) -> str:
    return f"size={layer.size}" if layer.scale_factor is None else f"scale_factor={layer.scale_factor}"


class UpsamplingNearest2D(Layer):
    """x [N, C, H, W] in another size, each element the nearest one's: F.interpolate with mode "nearest"."""

    def __init__(self, size: Any = None, scale_factor: Any = None, data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self.size, self.scale_factor, self.data_format = size, scale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, "nearest", data_format=self.data_format)

    def extra_repr(self) -> str:
        return f"{_target(self)}, data_format={self.data_format}"


class UpsamplingBilinear2D(UpsamplingNearest2D):
    """x [N, C, H, W] in another size, bilinear with the corners aligned: F.interpolate with mode "bilinear"."""

    def forward(self, x: Tensor) -> Tensor:
        return F.interpolate(x, self.size, self.scale_factor, "bilinear", align_corners=True,
                             data_format=self.data_format)


UpsamplingNearest2d, UpsamplingBilinear2d = UpsamplingNearest2D, UpsamplingBilinear2D


class PixelShuffle(Layer):
    """F.pixel_shuffle as a layer: x [N, C r^2, H, W] -> [N, C, H r, W r]."""

    def __init__(self, upscale_factor: int, data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self._upscale_factor, self._data_format = upscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)

    def extra_repr(self) -> str:
        return f"upscale_factor={self._upscale_factor}" + _format(self._data_format)


class PixelUnshuffle(Layer):
    """F.pixel_unshuffle as a layer: x [N, C, H r, W r] -> [N, C r^2, H, W]."""

    def __init__(self, downscale_factor: int, data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self._downscale_factor, self._data_format = downscale_factor, data_format

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)

    def extra_repr(self) -> str:
        return f"downscale_factor={self._downscale_factor}" + _format(self._data_format)


class ChannelShuffle(Layer):
    """F.channel_shuffle as a layer: x [N, C, H, W]."""

    def __init__(self, groups: int, data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self._groups, self._data_format = groups, data_format

    def forward(self, x: Tensor) -> Tensor:
        return F.channel_shuffle(x, self._groups, self._data_format)

    def extra_repr(self) -> str:
        return f"groups={self._groups}" + _format(self._data_format)


def _format(data_format: str) -> str:
    return "" if data_format == "NCHW" else f", data_format={data_format}"


class Unfold(Layer):
    """F.unfold as a layer: x [N, C, H, W] -> [N, C h w, L]."""

    def __init__(self, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None):
        super().__init__()
        self.kernel_sizes, self.dilations, self.paddings, self.strides = kernel_sizes, dilations, paddings, strides

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_sizes, self.strides, self.paddings, self.dilations)

    def extra_repr(self) -> str:
        return (f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, padding={self.paddings}, "
                f"stride={self.strides}")


class Fold(Unfold):
    """F.fold as a layer: x [N, C h w, L] -> [N, C, *output_sizes]."""

    def __init__(self, output_sizes: Any, kernel_sizes: Any, dilations: Any = 1, paddings: Any = 0, strides: Any = 1,
                 name: str | None = None):
        super().__init__(kernel_sizes, dilations, paddings, strides)
        self.output_sizes = output_sizes

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations)
