"""Activations as layers; see `minipd.nn.functional.activation` for what they compute."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer
from minipd.nn.initializer import Constant
from minipd.nn.layer import Layer

__all__ = ["CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
           "LogSigmoid", "LogSoftmax", "Maxout", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
           "Silu", "Softmax", "Softmax2D", "Softplus", "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink",
           "ThresholdedReLU"]


class _WithoutOptions(FunctionLayer):
    """A function that takes nothing but its operand."""

    def __init__(self, name: str | None = None):
        super().__init__(name)


class CELU(FunctionLayer):
    """`functional.celu`."""

    function = staticmethod(F.celu)

    def __init__(self, alpha: float = 1.0, name: str | None = None):
        super().__init__(name, alpha=alpha)


class ELU(FunctionLayer):
    """`functional.elu`."""

    function = staticmethod(F.elu)

    def __init__(self, alpha: float = 1.0, name: str | None = None):
        super().__init__(name, alpha=alpha)


class GELU(FunctionLayer):
    """`functional.gelu`."""

    function = staticmethod(F.gelu)

    def __init__(self, approximate: bool | str = False, name: str | None = None):
        super().__init__(name, approximate=approximate)


class GLU(FunctionLayer):
    """`functional.glu`."""

    function = staticmethod(F.glu)

    def __init__(self, axis: int = -1, name: str | None = None):
        super().__init__(name, axis=axis)


class Hardshrink(FunctionLayer):
    """`functional.hardshrink`."""

    function = staticmethod(F.hardshrink)

    def __init__(self, threshold: float = 0.5, name: str | None = None):
        super().__init__(name, threshold=threshold)


class Hardsigmoid(_WithoutOptions):
    """`functional.hardsigmoid`."""

    function = staticmethod(F.hardsigmoid)


class Hardswish(_WithoutOptions):
    """`functional.hardswish`."""

    function = staticmethod(F.hardswish)


class Hardtanh(FunctionLayer):
    """`functional.hardtanh`."""

    function = staticmethod(F.hardtanh)

    def __init__(self, min: float = -1.0, max: float = 1.0, name: str | None = None):
        super().__init__(name, min=min, max=max)


class LeakyReLU(FunctionLayer):
    """`functional.leaky_relu`."""

    function = staticmethod(F.leaky_relu)

    def __init__(self, negative_slope: float = 0.01, name: str | None = None):
        super().__init__(name, negative_slope=negative_slope)


class LogSigmoid(_WithoutOptions):
    """`functional.log_sigmoid`."""

    function = staticmethod(F.log_sigmoid)


class LogSoftmax(FunctionLayer):
    """`functional.log_softmax`."""

    function = staticmethod(F.log_softmax)

    def __init__(self, axis: int = -1, name: str | None = None):
        super().__init__(name, axis=axis)


class Maxout(FunctionLayer):
    """`functional.maxout`."""

    function = staticmethod(F.maxout)

    def __init__(self, groups: int, axis: int = 1, name: str | None = None):
        super().__init__(name, groups=groups, axis=axis)


class Mish(_WithoutOptions):
    """`functional.mish`."""

    function = staticmethod(F.mish)


class PReLU(Layer):
    """`functional.prelu`, whose slopes are trained: one, or one for each of num_parameters channels.

    init: the slopes to begin with.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, weight_attr: Any = None,
                 data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self._num_parameters, self._init, self._data_format, self._name = num_parameters, init, data_format, name
        self._weight = self.create_parameter([num_parameters], weight_attr, default_initializer=Constant(init))

    def forward(self, x: Tensor) -> Tensor:
        return F.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        name = "" if self._name is None else f", name={self._name}"
        return (f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}, "
                f"dtype={self._weight.dtype.name}{name}")


class ReLU(_WithoutOptions):
    """`functional.relu`."""

    function = staticmethod(F.relu)


class ReLU6(_WithoutOptions):
    """`functional.relu6`."""

    function = staticmethod(F.relu6)


class RReLU(FunctionLayer):
    """`functional.rrelu`: the slope is drawn while training."""

    def __init__(self, lower: float = 1.0 / 8.0, upper: float = 1.0 / 3.0, name: str | None = None):
        super().__init__(name, lower=lower, upper=upper)

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training)

    def extra_repr(self) -> str:
        name = "" if self.name is None else f", name={self.name}"
        dtype = dtypes.get_default_dtype() if self._dtype is None else dtypes.of(dtypes.to_np(self._dtype)).name
        return f"lower={self.lower}, upper={self.upper}, training={self.training}, dtype={dtype}{name}"


class SELU(FunctionLayer):
    """`functional.selu`."""

    function = staticmethod(F.selu)

    def __init__(self, scale: float = 1.0507009873554804934193349852946,
                 alpha: float = 1.6732632423543772848170429916717,
                 name: str | None = None):
        super().__init__(name, scale=scale, alpha=alpha)


class Sigmoid(_WithoutOptions):
    """`functional.sigmoid`."""

    function = staticmethod(F.sigmoid)


class Silu(FunctionLayer):
    """`functional.silu`."""

    function = staticmethod(F.silu)

    def __init__(self, inplace: bool = False, name: str | None = None):
        super().__init__(name, inplace=inplace)


SiLU = Silu


class Softmax(FunctionLayer):
    """`functional.softmax`."""

    function = staticmethod(F.softmax)

    def __init__(self, axis: int = -1, name: str | None = None):
        super().__init__(name, axis=axis)


class Softmax2D(FunctionLayer):
    """`functional.softmax` over the channels of x [N, C, H, W] or [C, H, W]."""

    def __init__(self, name: str | None = None):
        super().__init__(name)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2D: expected a tensor [N, C, H, W] or [C, H, W], got {describe(x.payload)}")
        return F.softmax(x, -3)


class Softplus(FunctionLayer):
    """`functional.softplus`."""

    function = staticmethod(F.softplus)

    def __init__(self, beta: float = 1, threshold: float = 20, name: str | None = None):
        super().__init__(name, beta=beta, threshold=threshold)


class Softshrink(FunctionLayer):
    """`functional.softshrink`."""

    function = staticmethod(F.softshrink)

    def __init__(self, threshold: float = 0.5, name: str | None = None):
        super().__init__(name, threshold=threshold)


class Softsign(_WithoutOptions):
    """`functional.softsign`."""

    function = staticmethod(F.softsign)


class Swish(_WithoutOptions):
    """`functional.swish`."""

    function = staticmethod(F.swish)


class Tanh(_WithoutOptions):
    """`functional.tanh`."""

    function = staticmethod(F.tanh)


class Tanhshrink(_WithoutOptions):
    """`functional.tanhshrink`."""

    function = staticmethod(F.tanhshrink)


class ThresholdedReLU(FunctionLayer):
    """`functional.thresholded_relu`."""

    function = staticmethod(F.thresholded_relu)

    def __init__(self, threshold: float = 1.0, value: float = 0.0, name: str | None = None):
        super().__init__(name, threshold=threshold, value=value)
