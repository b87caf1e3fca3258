"""The decomposition rules.

A rule takes the row's operands as Tensors and its attributes, and computes the same with other operators.  It runs
below the tape, under whatever interpreter asked for it: the dist interpreter does when a dimension that the operator
folds is split over the mesh, and then each reduction in the rule becomes one all-reduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minipd.framework.row import add_column
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.elementary import exp, log
from minipd.ops.embedding import TakeAlongAxis
from minipd.ops.math import where
from minipd.ops.reduce import Max, Sum, count

__all__: list[str] = []


def decompose(row: str) -> Callable:
    """Decorator: the function is how `row` decomposes."""
    def register(rule: Callable) -> Callable:
        add_column(row, "decompose", rule)
        return rule
    return register


@decompose("mean")
def mean(x: Tensor, *, axis: tuple, keepdim: bool = False) -> Tensor:
    """The sum over the *global* count: a mean of the shards' means is wrong where shards are uneven."""
    return Sum(x, axis=axis, keepdim=keepdim) / count(x.payload, axis)


@decompose("softmax")
def softmax(x: Tensor, *, axis: int) -> Tensor:
    """e^(x - max) / sum e^(x - max)."""
    e = exp(x - Max(x, axis=(axis,), keepdim=True))
    return e / Sum(e, axis=(axis,), keepdim=True)


@decompose("cross_entropy_with_softmax")
def cross_entropy_with_softmax(logits: Tensor, label: Tensor, *, ignore_index: int = -100,
                               axis: int) -> tuple[Tensor, Any]:
    """log sum e^z - z[label] with z = x - max: the three reductions of vocabulary-parallel cross entropy
    (Shoeybi et al., Megatron-LM, 2019, section 3): the maximum, the sum, and the logit of the label, which one shard
    has and the others give as 0.
    """
    z = logits - Max(logits, axis=(axis,), keepdim=True)
    e = exp(z)
    total = Sum(e, axis=(axis,), keepdim=True)
    valid = label != ignore_index
    picked = TakeAlongAxis(z, label * cast(valid, label.dtype), axis=axis)
    return e / total, where(valid, log(total) - picked, 0.0)
