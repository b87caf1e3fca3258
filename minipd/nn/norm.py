"""Normalisation as layers, except over the batch (`batch_norm`); `minipd.nn.functional.norm` says what they compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer
from minipd.nn.initializer import Constant
from minipd.nn.layer import Layer
from minipd.nn.power_iteration import as_matrix, improved
from minipd.ops.creation import shape_tuple
from minipd.ops.linalg import matmul
from minipd.ops.math import square
from minipd.ops.random import randn
from minipd.ops.reduce import sum

__all__ = ["GroupNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D", "LayerNorm", "LocalResponseNorm",
           "RMSNorm", "SpectralNorm"]


def _affine(layer: Layer, features: int, weight_attr: Any, bias_attr: Any, device: Any = None) -> tuple[Any, Any]:
    """(weight of ones, bias of zeros); None where the attribute is False."""
    weight = layer.create_parameter([features], weight_attr, default_initializer=Constant(1.0), device=device)
    return weight, layer.create_parameter([features], bias_attr, is_bias=True, device=device)


class LayerNorm(Layer):
    """`functional.layer_norm` over the last dimensions, whose sizes normalized_shape gives.

    weight, bias: [number of features], flat, as in Paddle; none with elementwise_affine=False, or where the attribute
    is False; bias=False leaves out the bias.

    >>> from minipd.ops.creation import to_tensor
    >>> LayerNorm(2, epsilon=0.0)(to_tensor([[1.0, 3.0]])).tolist()
    [[-1.0, 1.0]]
    """

    def __init__(self, normalized_shape: int | Sequence[int], epsilon: float = 1e-5, *,
                 elementwise_affine: bool = True, bias: bool = True, device: Any = None, dtype: Any = None,
                 weight_attr: Any = None, bias_attr: Any = None, name: str | None = None):
        super().__init__(dtype=dtype)
        shape = list(shape_tuple("LayerNorm", normalized_shape))
        self._normalized_shape, self._epsilon = shape, epsilon
        self.weight, self.bias = _affine(self, math.prod(shape), weight_attr if elementwise_affine else False,
                                         bias_attr if elementwise_affine and bias else False, device)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class GroupNorm(Layer):
    """`functional.group_norm`: num_channels channels in num_groups groups.

    weight, bias: [num_channels]; none with affine=False, or where the attribute is False.
    """

    def __init__(self, num_groups: int, num_channels: int, epsilon: float = 1e-5, *, affine: bool = True,
                 device: Any = None, dtype: Any = None, weight_attr: Any = None, bias_attr: Any = None,
                 data_format: str = "NCHW", name: str | None = None):
        super().__init__(dtype=dtype)
        self._num_groups, self._num_channels, self._epsilon = num_groups, num_channels, epsilon
        self._data_format = data_format
        self.weight, self.bias = _affine(self, num_channels, weight_attr if affine else False,
                                         bias_attr if affine else False, device)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self._num_groups, self._epsilon, self.weight, self.bias, self._data_format)

    def extra_repr(self) -> str:
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class _InstanceNorm(Layer):
    """`functional.instance_norm`; a subclass says how many dimensions its input has.   scale, bias: [num_features]"""

    ranks: tuple[int, ...]

    def __init__(self, num_features: int, epsilon: float = 1e-5, momentum: float = 0.9, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCHW", name: str | None = None):
        super().__init__()
        self._num_features, self._epsilon, self._momentum = num_features, epsilon, momentum
        self._data_format = data_format
        self.scale, self.bias = _affine(self, num_features, weight_attr, bias_attr)

    def forward(self, input: Tensor) -> Tensor:
        check_rank(self, input, self.ranks)
        return F.instance_norm(input, weight=self.scale, bias=self.bias, momentum=self._momentum, eps=self._epsilon,
                               data_format=self._data_format)

    def extra_repr(self) -> str:
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


def check_rank(layer: Layer, x: Tensor, ranks: tuple[int, ...]) -> None:
    """ValueError unless x has one of these numbers of dimensions."""
    if x.ndim not in ranks:
        raise ValueError(f"{type(layer).__name__}: expected an input of {' or '.join(map(str, ranks))} dimensions, got "
                         f"{describe(x.payload)}")


class InstanceNorm1D(_InstanceNorm):
    """`functional.instance_norm` of [N, C] or [N, C, L]."""

    ranks = (2, 3)

    def __init__(self, num_features: int, epsilon: float = 1e-5, momentum: float = 0.9, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCL", name: str | None = None):
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class InstanceNorm2D(_InstanceNorm):
    """`functional.instance_norm` of [N, C, H, W]."""

    ranks = (4,)


class InstanceNorm3D(_InstanceNorm):
    """`functional.instance_norm` of [N, C, D, H, W]."""

    ranks = (5,)

    def __init__(self, num_features: int, epsilon: float = 1e-5, momentum: float = 0.9, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCDHW", name: str | None = None):
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class LocalResponseNorm(FunctionLayer):
    """`functional.local_response_norm`."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0, data_format: str = "NCHW",
                 name: str | None = None):
        super().__init__(name, size=size, alpha=alpha, beta=beta, k=k)
        self.data_format = data_format

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k, self.data_format)

    def extra_repr(self) -> str:
        other = "" if self.data_format == "NCHW" else f", data_format={self.data_format}"
        return super().extra_repr() + other


class RMSNorm(Layer):
    """x / sqrt(mean(x^2) + epsilon) * weight over the last dimensions.   (Zhang, Sennrich 2019)

    normalized_shape: their sizes (an int: of the last one), and the shape of `weight`, which starts as ones.

    >>> from minipd.ops.creation import to_tensor
    >>> RMSNorm(2, epsilon=0.0)(to_tensor([[1.0, 7.0]])).tolist()
    [[0.20000000298023224, 1.399999976158142]]
    """

    def __init__(self, normalized_shape: int | Sequence[int], epsilon: float = 1e-5, weight_attr: Any = None,
                 name: str | None = None):
        super().__init__()
        shape = shape_tuple("RMSNorm", normalized_shape)
        self.normalized_shape, self.epsilon = shape, epsilon
        self.weight = self.create_parameter(shape, weight_attr, default_initializer=Constant(1.0))

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.epsilon)

    def extra_repr(self) -> str:
        return f"normalized_shape={list(self.normalized_shape)}, epsilon={self.epsilon}"


class SpectralNorm(Layer):
    """A weight, which it is called with, over its largest singular value.   (Miyato et al. 2018)

    The weight is a matrix here, dimension `dim` against all others.  Its singular vectors are found by power_iters
    iterations from `weight_u` and `weight_v`, buffers that stay as they are (as in Paddle); for the gradient they are
    constants.  (`nn.utils.spectral_norm` does the same to a layer's parameter.)
    """

    def __init__(self, weight_shape: Sequence[int], dim: int = 0, power_iters: int = 1, eps: float = 1e-12,
                 dtype: Any = "float32"):
        super().__init__(dtype=dtype)
        shape = list(weight_shape)
        if not -len(shape) <= dim < len(shape) or power_iters < 0:
            raise ValueError(f"SpectralNorm: expected a dim of the weight {shape} and power_iters of at least 0, got "
                             f"dim={dim}, power_iters={power_iters}")
        self._shape, self._dim, self._power_iters, self._eps = shape, dim % len(shape), power_iters, eps
        rows = shape[self._dim]
        self.register_buffer("weight_u", randn([rows], dtype))
        self.register_buffer("weight_v", randn([math.prod(shape) // rows], dtype))

    def forward(self, x: Tensor) -> Tensor:
        if list(x.shape) != self._shape:
            raise ValueError(f"SpectralNorm: expected a weight of shape {self._shape}, got {describe(x.payload)}")
        matrix = as_matrix(x, self._dim)
        u, v = improved(matrix, self.weight_u, self.weight_v, self._power_iters, self._unit)
        return x / sum(u * matmul(matrix, v))

    def _unit(self, x: Tensor) -> Tensor:
        return x / (sum(square(x)) ** 0.5 + self._eps)
