"""Padding as layers: one for each mode and number of spatial dimensions.

`padding` is an int for every side, or [left, right], [left, right, top, bottom], [left, right, top, bottom, front,
back]; the values are those of F.pad.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.layer import Layer

__all__ = ["CircularPad1D", "CircularPad1d", "CircularPad2D", "CircularPad2d", "CircularPad3D", "CircularPad3d",
           "ConstantPad1D", "ConstantPad1d", "ConstantPad2D", "ConstantPad2d", "ConstantPad3D", "ConstantPad3d",
           "Pad1D", "Pad2D", "Pad3D", "ReflectionPad1D", "ReflectionPad1d", "ReflectionPad2D", "ReflectionPad2d",
           "ReflectionPad3D", "ReflectionPad3d", "ReplicationPad1D", "ReplicationPad1d", "ReplicationPad2D",
           "ReplicationPad2d", "ReplicationPad3D", "ReplicationPad3d", "ZeroPad1D", "ZeroPad1d", "ZeroPad2D",
           "ZeroPad2d", "ZeroPad3D", "ZeroPad3d"]


class _Pad(Layer):
    """What the layers share."""

    rank: int

    def __init__(self, padding: Any, mode: str, value: float, data_format: str):
        super().__init__()
        self._pad = [padding] * (2 * self.rank) if isinstance(padding, int) else padding
        self._mode, self._value, self._data_format = mode, value, data_format

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x, self._pad, self._mode, self._value, self._data_format, pad_from_left_axis=False)

    def extra_repr(self) -> str:
        return f"padding={self._pad}, mode={self._mode}, value={self._value}, data_format={self._data_format}"


class Pad1D(_Pad):
    """x [N, C, L] padded along L ("NLC": channels last), by F.pad.

    >>> from minipd.ops.creation import to_tensor
    >>> Pad1D([1, 2], mode="replicate")(to_tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 2.0, 2.0]]]
    """

    rank = 1

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCL",
                 name: str | None = None):
        super().__init__(padding, mode, value, data_format)


class Pad2D(_Pad):
    """x [N, C, H, W] padded along W, then H ("NHWC": channels last), by F.pad."""

    rank = 2

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCHW",
                 name: str | None = None):
        super().__init__(padding, mode, value, data_format)


class Pad3D(_Pad):
    """x [N, C, D, H, W] padded along W, then H, then D ("NDHWC": channels last), by F.pad."""

    rank = 3

    def __init__(self, padding: Any, mode: str = "constant", value: float = 0.0, data_format: str = "NCDHW",
                 name: str | None = None):
        super().__init__(padding, mode, value, data_format)


class ZeroPad1D(_Pad):
    """x [N, C, L] padded with zeros."""

    rank = 1

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None):
        super().__init__(padding, "constant", 0.0, data_format)


class ZeroPad2D(_Pad):
    """x [N, C, H, W] padded with zeros."""

    rank = 2

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None):
        super().__init__(padding, "constant", 0.0, data_format)


class ZeroPad3D(_Pad):
    """x [N, C, D, H, W] padded with zeros."""

    rank = 3

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(padding, "constant", 0.0, data_format)


class ConstantPad1D(_Pad):
    """x [N, C, L] padded with `value`."""

    rank = 1

    def __init__(self, padding: Any, value: float, data_format: str = "NCL", name: str | None = None):
        super().__init__(padding, "constant", value, data_format)


class ConstantPad2D(_Pad):
    """x [N, C, H, W] padded with `value`."""

    rank = 2

    def __init__(self, padding: Any, value: float, data_format: str = "NCHW", name: str | None = None):
        super().__init__(padding, "constant", value, data_format)


class ConstantPad3D(_Pad):
    """x [N, C, D, H, W] padded with `value`."""

    rank = 3

    def __init__(self, padding: Any, value: float, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(padding, "constant", value, data_format)


class ReflectionPad1D(_Pad):
    """x [N, C, L] padded by what the edge mirrors."""

    rank = 1

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None):
        super().__init__(padding, "reflect", 0.0, data_format)


class ReflectionPad2D(_Pad):
    """x [N, C, H, W] padded by what the edge mirrors."""

    rank = 2

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None):
        super().__init__(padding, "reflect", 0.0, data_format)


class ReflectionPad3D(_Pad):
    """x [N, C, D, H, W] padded by what the edge mirrors."""

    rank = 3

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(padding, "reflect", 0.0, data_format)


class ReplicationPad1D(_Pad):
    """x [N, C, L] padded by its edge, repeated."""

    rank = 1

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None):
        super().__init__(padding, "replicate", 0.0, data_format)


class ReplicationPad2D(_Pad):
    """x [N, C, H, W] padded by its edge, repeated."""

    rank = 2

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None):
        super().__init__(padding, "replicate", 0.0, data_format)


class ReplicationPad3D(_Pad):
    """x [N, C, D, H, W] padded by its edge, repeated."""

    rank = 3

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(padding, "replicate", 0.0, data_format)


class CircularPad1D(_Pad):
    """x [N, C, L] padded by its other end."""

    rank = 1

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None):
        super().__init__(padding, "circular", 0.0, data_format)


class CircularPad2D(_Pad):
    """x [N, C, H, W] padded by its other end."""

    rank = 2

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None):
        super().__init__(padding, "circular", 0.0, data_format)


class CircularPad3D(_Pad):
    """x [N, C, D, H, W] padded by its other end."""

    rank = 3

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(padding, "circular", 0.0, data_format)


ZeroPad1d, ZeroPad2d, ZeroPad3d = ZeroPad1D, ZeroPad2D, ZeroPad3D
ConstantPad1d, ConstantPad2d, ConstantPad3d = ConstantPad1D, ConstantPad2D, ConstantPad3D
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = ReflectionPad1D, ReflectionPad2D, ReflectionPad3D
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = ReplicationPad1D, ReplicationPad2D, ReplicationPad3D
CircularPad1d, CircularPad2d, CircularPad3d = CircularPad1D, CircularPad2D, CircularPad3D
