"""Layers with few words: Linear, Bilinear, Embedding, Identity, Flatten, Unflatten."""

from __future__ import annotations

from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.function_layer import FunctionLayer
from minipd.nn.initializer import XavierUniform
from minipd.nn.initializer.base import chosen
from minipd.nn.initializer.given import ZeroRow
from minipd.nn.layer import Layer
from minipd.nn.param_attr import ParamAttr
from minipd.ops.reshape import flatten, unflatten

__all__ = ["Bilinear", "Embedding", "Flatten", "Identity", "Linear", "Unflatten"]


class Linear(Layer):
    """x @ weight + bias.   x [..., in] -> [..., out];  weight [in, out], bias [out] (none with bias_attr=False)

    >>> from minipd.ops.creation import ones
    >>> Linear(3, 2)(ones([5, 3])).shape
    paddle.Size([5, 2])
    """

    def __init__(self, in_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
                 name: str | None = None):
        super().__init__()
        self.in_features, self.out_features, self.name = in_features, out_features, name
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._dtype}" + (
            f", name={self.name}" if self.name else "")


class Bilinear(Layer):
    """`functional.bilinear`.   x1 [N, in1], x2 [N, in2] -> [N, out];  weight [out, in1, in2], bias [1, out]"""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, weight_attr: Any = None,
                 bias_attr: Any = None, name: str | None = None):
        super().__init__()
        self._sizes, self._name = (in1_features, in2_features, out_features), name
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        name = "" if self._name is None else f", name={self._name}"
        return "in1_features={}, in2_features={}, out_features={}".format(*self._sizes) + f", dtype={self._dtype}{name}"


class Embedding(Layer):
    """Rows of `weight` [num_embeddings, embedding_dim] by number.   x int [...] -> [..., embedding_dim]

    padding_idx: this number gives zeros and no gradient, and its row starts as zeros.
    _weight: first values, a Tensor [num_embeddings, embedding_dim].  _freeze: the weight wants no gradient.
    max_norm, norm_type, scale_grad_by_freq: see `functional.embedding`.
    Raises: ValueError for a padding_idx that is no row.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, *, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False, device: Any = None,
                 dtype: Any = None, weight_attr: Any = None, name: str | None = None):
        super().__init__(dtype=dtype)
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"Embedding: expected a padding_idx in {-num_embeddings} .. {num_embeddings - 1}, got "
                                 f"{padding_idx}")
        self._padding_idx = padding_idx
        padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.sparse, self.scale_grad_by_freq, self.name = sparse, scale_grad_by_freq, name
        attr = ParamAttr.of(weight_attr)
        default = chosen(attr.initializer, XavierUniform(), is_bias=False)
        if padding_idx is not None:
            default = ZeroRow(default or XavierUniform(), padding_idx)
        self.weight = self.create_parameter([num_embeddings, embedding_dim], attr.starting_as(default), device=device)
        if _weight is not None:
            self.weight.set_value(_weight)
        if _freeze:
            self.weight.stop_gradient = True

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.sparse,
                           self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self._padding_idx}"
        name = f", name={self.name}" if self.name else ""
        return (f"{self.num_embeddings}, {self.embedding_dim}{padding}, sparse={self.sparse}, "
                f"scale_grad_by_freq={self.scale_grad_by_freq}{name}")


class Identity(Layer):
    """The input.  Arguments are accepted and ignored."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Layer):
    """The dimensions from start_axis to stop_axis as one."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1):
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, input: Tensor) -> Tensor:
        return flatten(input, self.start_axis, self.stop_axis)


class Unflatten(FunctionLayer):
    """The dimension `axis` as several, of the sizes `shape`; one of them may be -1.

    >>> from minipd.ops.creation import ones
    >>> Unflatten(1, [2, -1])(ones([4, 6, 8])).shape
    paddle.Size([4, 2, 3, 8])
    """

    function = staticmethod(unflatten)

    def __init__(self, axis: int, shape: Any, name: str | None = None):
        super().__init__(name, axis=axis, shape=shape)
