"""Losses over classes by the thousands as layers: a tree, and clusters, each with its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.framework.tensor import Tensor
from minipd.nn import functional as F
from minipd.nn.container import LayerList, ParameterList
from minipd.nn.layer import Layer
from minipd.ops.joining import concat
from minipd.ops.reduce import argmax

__all__ = ["AdaptiveLogSoftmaxWithLoss", "HSigmoidLoss"]


class HSigmoidLoss(Layer):
    """`functional.hsigmoid_loss` with its weights: one row, and one bias, for each inner node of the tree.

    is_custom: the tree is given with each call, as path_table and path_code; it may have num_classes inner nodes then.
    """

    def __init__(self, feature_size: int, num_classes: int, weight_attr: Any = None, bias_attr: Any = None,
                 is_custom: bool = False, is_sparse: bool = False, name: str | None = None):
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss: expected at least 2 classes, got num_classes={num_classes}")
        self._num_classes, self._is_custom = num_classes, is_custom
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([nodes, feature_size], weight_attr)
        self.bias = self.create_parameter([nodes, 1], bias_attr, is_bias=True)

    def forward(self, input: Tensor, label: Tensor, path_table: Tensor | None = None,
                path_code: Tensor | None = None) -> Tensor:
        if self._is_custom and (path_table is None or path_code is None):
            raise ValueError("HSigmoidLoss: expected path_table and path_code, for is_custom says that they are given")
        return F.hsigmoid_loss(input, label, self._num_classes, self.weight, self.bias, path_table, path_code)


class AdaptiveLogSoftmaxWithLoss(Layer):
    """`functional.adaptive_log_softmax_with_loss` with its weights.

    cutoffs: where clusters begin, ascending, between 1 and n_classes - 1.  Cluster i goes through
    in_features / div_value^(i + 1) features.
    (The weights of the clusters are parameters of this layer; Paddle's layer does not list its own.)
    Raises: ValueError for other cutoffs.
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], weight_attr: Any = None,
                 bias_attr: Any = None, div_value: float = 4.0, head_bias: bool = False, name: str | None = None):
        super().__init__()
        bounds = list(cutoffs)
        if bounds != sorted(set(bounds)) or not bounds or bounds[0] < 1 or bounds[-1] > n_classes - 1:
            raise ValueError(f"AdaptiveLogSoftmaxWithLoss: expected ascending cutoffs between 1 and {n_classes - 1}, "
                             f"got {bounds}")
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = [*bounds, n_classes]
        self.shortlist_size, self.n_clusters = bounds[0], len(bounds)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr)
        self.head_bias = self.create_parameter([self.head_size], bias_attr, is_bias=True) if head_bias else None
        self.tail_weights = LayerList([self._tail(i, weight_attr) for i in range(self.n_clusters)])

    def _tail(self, i: int, weight_attr: Any) -> ParameterList:
        features = int(self.in_features // self.div_value ** (i + 1))
        size = self.cutoffs[i + 1] - self.cutoffs[i]
        return ParameterList([self.create_parameter([self.in_features, features], weight_attr),
                              self.create_parameter([features, size], weight_attr)])

    def forward(self, input: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        tails = [list(tail) for tail in self.tail_weights]
        return F.adaptive_log_softmax_with_loss(input, label, self.head_weight, tails, self.cutoffs, self.head_bias)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, [N, n_classes]."""
        head = F.log_softmax(F.linear(input, self.head_weight, self.head_bias), 1)
        parts = [head[:, :self.shortlist_size]]
        for i, (project, out) in enumerate(list(tail) for tail in self.tail_weights):
            at = self.shortlist_size + i
            parts.append(F.log_softmax(F.linear(F.linear(input, project), out), 1) + head[:, at:at + 1])
        return concat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row, [N], in the input's dtype, as Paddle gives it."""
        return argmax(self.log_prob(input), 1).astype(input.dtype)
