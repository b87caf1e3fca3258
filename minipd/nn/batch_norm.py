"""Batch normalisation as layers.

`_mean` and `_variance` are the running statistics: buffers, saved with the layer, which each call in training mode
moves towards the batch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.rank import current
from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.initializer import Constant
from minipd.nn.layer import Layer
from minipd.nn.norm import check_rank
from minipd.ops.creation import ones, zeros

__all__ = ["BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm"]


class _BatchNorm(Layer):
    """`functional.batch_norm`; a subclass says how many dimensions its input has (None: any).

    weight, bias: [num_features]; None where the attribute is False.
    momentum: how much of the running statistics stays in each call.
    use_global_stats: whether to normalise by the running statistics; None: outside of training.
    """

    ranks: tuple[int, ...] | None = None

    def __init__(self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCHW", use_global_stats: bool | None = None,
                 name: str | None = None, dtype: Any = None):
        super().__init__(dtype=dtype)
        self._num_features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._data_format, self._use_global_stats, self._name = data_format, use_global_stats, name
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self.register_buffer("_mean", zeros([num_features], dtype))
        self.register_buffer("_variance", ones([num_features], dtype))

    def forward(self, input: Tensor) -> Tensor:
        if self.ranks is not None:
            check_rank(self, input, self.ranks)
        return F.batch_norm(input, self._mean, self._variance, self.weight, self.bias, self.training, self._momentum,
                            self._epsilon, self._data_format, self._use_global_stats)

    def extra_repr(self) -> str:
        name = "" if self._name is None else f", name={self._name}"
        return (f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
                f"{self._shown_format()}{name}")

    def _shown_format(self) -> str:
        return f", data_format={self._data_format}"


class BatchNorm1D(_BatchNorm):
    """`functional.batch_norm` of [N, C] or [N, C, L].

    >>> from minipd.ops.creation import to_tensor
    >>> layer = BatchNorm1D(1, epsilon=0.0)
    >>> layer(to_tensor([[1.0], [3.0]])).tolist(), layer._variance.tolist()
    ([[-1.0], [1.0]], [1.0])
    """

    ranks = (2, 3)

    def __init__(self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCL", use_global_stats: bool | None = None,
                 name: str | None = None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNorm):
    """`functional.batch_norm` of [N, C, H, W]."""

    ranks = (4,)

    def __init__(self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCHW", use_global_stats: bool | None = None,
                 name: str | None = None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm3D(_BatchNorm):
    """`functional.batch_norm` of [N, C, D, H, W]."""

    ranks = (5,)

    def __init__(self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCDHW", use_global_stats: bool | None = None,
                 name: str | None = None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm(_BatchNorm):
    """Paddle's older batch normalisation: of any number of dimensions, with an activation `act` (a name in
    `nn.functional`) after it.

    is_test: begin in evaluation mode.  trainable_statistics: normalise by the batch in evaluation mode too.
    in_place, the names of the statistics and do_model_average_for_mean_and_var are accepted, and without effect.
    """

    def __init__(self, num_channels: int, act: str | None = None, is_test: bool = False, momentum: float = 0.9,
                 epsilon: float = 1e-5, param_attr: Any = None, bias_attr: Any = None, dtype: Any = "float32",
                 data_layout: str = "NCHW", in_place: bool = False, moving_mean_name: str | None = None,
                 moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
                 use_global_stats: bool = False, trainable_statistics: bool = False):
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, None, None, dtype)
        self._act, self._always, self._by_batch = act, use_global_stats, trainable_statistics
        self.training = not is_test

    def forward(self, input: Tensor) -> Tensor:
        self._use_global_stats = self._always or not (self.training or self._by_batch)
        out = super().forward(input)
        return out if self._act is None else getattr(F, self._act)(out)

    def extra_repr(self) -> str:
        return ""


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation by the statistics of the global batch.

    A distributed tensor *is* the global batch, however it is placed: so on one this is what every batch normalisation
    does here, with one small all-reduce for the mean and one for the variance.  Ranks that each hold a batch of their
    own, as plain tensors, share nothing that could be synchronised, and are told so.
    """

    def __init__(self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-5, weight_attr: Any = None,
                 bias_attr: Any = None, data_format: str = "NCHW", name: str | None = None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    def forward(self, x: Tensor) -> Tensor:
        if self.training and type(x.payload) is np.ndarray and current().world_size > 1:
            raise RuntimeError(f"SyncBatchNorm: expected a distributed tensor, got a plain one on a rank among "
                               f"{current().world_size}; say how the batch lies on the mesh, with shard_tensor or "
                               "dtensor_from_local")
        return super().forward(x)

    def _shown_format(self) -> str:
        return ""

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """The layer with every batch normalisation in it replaced by a SyncBatchNorm that has its tensors."""
        if isinstance(layer, _BatchNorm) and not isinstance(layer, SyncBatchNorm):
            new = cls(layer._num_features, layer._momentum, layer._epsilon, False, False, layer._data_format,
                      layer._name)
            new.weight, new.bias, new.training = layer.weight, layer.bias, layer.training
            new._mean, new._variance, new._use_global_stats = layer._mean, layer._variance, layer._use_global_stats
            return new
        for name, sub in layer.named_children():
            converted = cls.convert_sync_batchnorm(sub)
            if converted is not sub:
                layer.add_sublayer(name, converted)
        return layer
