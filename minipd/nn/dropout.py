"""Dropout as layers: they drop while training, and pass everything on otherwise."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer

__all__ = ["AlphaDropout", "Dropout", "Dropout2D", "Dropout3D", "FeatureAlphaDropout"]


class _WhileTraining(FunctionLayer):
    """A function that wants to know whether the layer is training."""

    def forward(self, input: Tensor) -> Any:
        options = {option: getattr(self, option) for option in self._options}
        return type(self).function(input, training=self.training, **options)


class Dropout(_WhileTraining):
    """Each element zeroed with probability p while training; the mask depends on the element's global index only.

    axis, mode: see `functional.dropout`.
    """

    function = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False, axis: Any = None, mode: str = "upscale_in_train",
                 name: str | None = None):
        super().__init__(name, p=p, axis=axis, mode=mode, inplace=inplace)


class Dropout2D(_WhileTraining):
    """`functional.dropout2d`: whole channels of images."""

    function = staticmethod(F.dropout2d)

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None):
        super().__init__(name, p=p, data_format=data_format)


class Dropout3D(_WhileTraining):
    """`functional.dropout3d`: whole channels of volumes."""

    function = staticmethod(F.dropout3d)

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(name, p=p, data_format=data_format)


class AlphaDropout(_WhileTraining):
    """`functional.alpha_dropout`, which keeps mean and variance."""

    function = staticmethod(F.alpha_dropout)

    def __init__(self, p: float = 0.5, name: str | None = None):
        super().__init__(name, p=p)


class FeatureAlphaDropout(_WhileTraining):
    """`functional.feature_alpha_dropout`: whole channels, keeping mean and variance."""

    function = staticmethod(F.feature_alpha_dropout)

    def __init__(self, p: float = 0.5, name: str | None = None):
        super().__init__(name, p=p)
