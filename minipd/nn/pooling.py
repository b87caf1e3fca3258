"""Pooling as layers; see `minipd.nn.functional.pooling` and `adaptive_pooling` for what they compute."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer

__all__ = ["AdaptiveAvgPool1D", "AdaptiveAvgPool1d", "AdaptiveAvgPool2D", "AdaptiveAvgPool2d", "AdaptiveAvgPool3D",
           "AdaptiveAvgPool3d", "AdaptiveMaxPool1D", "AdaptiveMaxPool1d", "AdaptiveMaxPool2D", "AdaptiveMaxPool2d",
           "AdaptiveMaxPool3D", "AdaptiveMaxPool3d", "AvgPool1D", "AvgPool2D", "AvgPool3D", "FractionalMaxPool2D",
           "FractionalMaxPool3D", "LPPool1D", "LPPool1d", "LPPool2D", "LPPool2d", "MaxPool1D", "MaxPool2D", "MaxPool3D",
           "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D"]


class _Pooling(FunctionLayer):
    """Calls a function of one tensor; `shown` are the options that print."""

    shown: tuple[str, ...] = ("kernel_size", "stride", "padding")

    def forward(self, x: Tensor) -> Any:
        return super().forward(x)

    def extra_repr(self) -> str:
        return ", ".join(f"{option}={getattr(self, option)}" for option in self.shown)


class MaxPool1D(_Pooling):
    """`functional.max_pool1d`."""

    function = staticmethod(F.max_pool1d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
                 ceil_mode: bool = False, name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, return_mask=return_mask,
                         ceil_mode=ceil_mode)


class MaxPool2D(_Pooling):
    """`functional.max_pool2d`."""

    function = staticmethod(F.max_pool2d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
                 ceil_mode: bool = False, data_format: str = "NCHW", name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, return_mask=return_mask,
                         ceil_mode=ceil_mode, data_format=data_format)


class MaxPool3D(_Pooling):
    """`functional.max_pool3d`."""

    function = staticmethod(F.max_pool3d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, return_mask: bool = False,
                 ceil_mode: bool = False, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, return_mask=return_mask,
                         ceil_mode=ceil_mode, data_format=data_format)


class AvgPool1D(_Pooling):
    """`functional.avg_pool1d`."""

    function = staticmethod(F.avg_pool1d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, exclusive: bool = True,
                 ceil_mode: bool = False, name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, exclusive=exclusive,
                         ceil_mode=ceil_mode)


class AvgPool2D(_Pooling):
    """`functional.avg_pool2d`."""

    function = staticmethod(F.avg_pool2d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 exclusive: bool = True, divisor_override: float | None = None, data_format: str = "NCHW",
                 name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
                         exclusive=exclusive, divisor_override=divisor_override, data_format=data_format)


class AvgPool3D(_Pooling):
    """`functional.avg_pool3d`."""

    function = staticmethod(F.avg_pool3d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 exclusive: bool = True, divisor_override: float | None = None, data_format: str = "NCDHW",
                 name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode,
                         exclusive=exclusive, divisor_override=divisor_override, data_format=data_format)


class LPPool1D(_Pooling):
    """`functional.lp_pool1d`."""

    function = staticmethod(F.lp_pool1d)
    shown = ("norm_type", *_Pooling.shown)

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 ceil_mode: bool = False, data_format: str = "NCL", name: str | None = None):
        super().__init__(name, norm_type=float(norm_type), kernel_size=kernel_size, stride=stride, padding=padding,
                         ceil_mode=ceil_mode, data_format=data_format)


class LPPool2D(_Pooling):
    """`functional.lp_pool2d`."""

    function = staticmethod(F.lp_pool2d)
    shown = ("norm_type", *_Pooling.shown)

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 ceil_mode: bool = False, data_format: str = "NCHW", name: str | None = None):
        super().__init__(name, norm_type=float(norm_type), kernel_size=kernel_size,
                         stride=kernel_size if stride is None else stride, padding=padding, ceil_mode=ceil_mode,
                         data_format=data_format)


class AdaptiveAvgPool1D(_Pooling):
    """`functional.adaptive_avg_pool1d`."""

    function = staticmethod(F.adaptive_avg_pool1d)
    shown = ("output_size",)

    def __init__(self, output_size: Any, name: str | None = None):
        super().__init__(name, output_size=output_size)


class AdaptiveAvgPool2D(_Pooling):
    """`functional.adaptive_avg_pool2d`."""

    function = staticmethod(F.adaptive_avg_pool2d)
    shown = ("output_size",)

    def __init__(self, output_size: Any, data_format: str = "NCHW", name: str | None = None):
        super().__init__(name, output_size=output_size, data_format=data_format)


class AdaptiveAvgPool3D(_Pooling):
    """`functional.adaptive_avg_pool3d`."""

    function = staticmethod(F.adaptive_avg_pool3d)
    shown = ("output_size",)

    def __init__(self, output_size: Any, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(name, output_size=output_size, data_format=data_format)


class AdaptiveMaxPool1D(_Pooling):
    """`functional.adaptive_max_pool1d`."""

    function = staticmethod(F.adaptive_max_pool1d)
    shown = ("output_size", "return_mask")

    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None):
        super().__init__(name, output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool2D(_Pooling):
    """`functional.adaptive_max_pool2d`."""

    function = staticmethod(F.adaptive_max_pool2d)
    shown = ("output_size", "return_mask")

    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None):
        super().__init__(name, output_size=output_size, return_mask=return_mask)


class AdaptiveMaxPool3D(_Pooling):
    """`functional.adaptive_max_pool3d`."""

    function = staticmethod(F.adaptive_max_pool3d)
    shown = ("output_size", "return_mask")

    def __init__(self, output_size: Any, return_mask: bool = False, name: str | None = None):
        super().__init__(name, output_size=output_size, return_mask=return_mask)


class FractionalMaxPool2D(_Pooling):
    """`functional.fractional_max_pool2d`."""

    function = staticmethod(F.fractional_max_pool2d)
    shown = ("output_size", "return_mask")

    def __init__(self, output_size: Any, kernel_size: Any = None, random_u: float | None = None,
                 return_mask: bool = False, name: str | None = None):
        super().__init__(name, output_size=output_size, kernel_size=kernel_size, random_u=random_u,
                         return_mask=return_mask)


class FractionalMaxPool3D(_Pooling):
    """`functional.fractional_max_pool3d`."""

    function = staticmethod(F.fractional_max_pool3d)
    shown = ("output_size", "return_mask")

    def __init__(self, output_size: Any, kernel_size: Any = None, random_u: float | None = None,
                 return_mask: bool = False, name: str | None = None):
        super().__init__(name, output_size=output_size, kernel_size=kernel_size, random_u=random_u,
                         return_mask=return_mask)


class _Unpooling(_Pooling):
    """Calls a function of two tensors; a call may name another output_size."""

    shown = ("output_size",)

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:  # type: ignore[override]
        options = {option: getattr(self, option) for option in self._options}
        if output_size is not None:
            options["output_size"] = output_size
        return type(self).function(x, indices, **options)


class MaxUnPool1D(_Unpooling):
    """`functional.max_unpool1d`."""

    function = staticmethod(F.max_unpool1d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCL",
                 output_size: Any = None, name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, data_format=data_format,
                         output_size=output_size)


class MaxUnPool2D(_Unpooling):
    """`functional.max_unpool2d`."""

    function = staticmethod(F.max_unpool2d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCHW",
                 output_size: Any = None, name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, data_format=data_format,
                         output_size=output_size)


class MaxUnPool3D(_Unpooling):
    """`functional.max_unpool3d`."""

    function = staticmethod(F.max_unpool3d)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, data_format: str = "NCDHW",
                 output_size: Any = None, name: str | None = None):
        super().__init__(name, kernel_size=kernel_size, stride=stride, padding=padding, data_format=data_format,
                         output_size=output_size)


AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D
AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = AdaptiveMaxPool1D, AdaptiveMaxPool2D, AdaptiveMaxPool3D
LPPool1d, LPPool2d = LPPool1D, LPPool2D
