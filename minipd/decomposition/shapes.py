"""Rules of what takes its shape from another tensor: that shape as an attribute.

As an operand the other tensor would have to live as long as somebody asks for its shape, which keeps a compiled group
from never storing it.
"""

from __future__ import annotations

from typing import Any

from minipd.decomposition.table import decompose_rule
from minipd.framework.dim import same
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import Expand
from minipd.ops.creation import Full
from minipd.ops.math import add
from minipd.ops.reduce import Sum
from minipd.ops.reshape import Reshape

__all__: list[str] = []


@decompose_rule("expand_as", small=True)
def expand_as(x: Tensor, target: Tensor) -> Tensor:
    """expand to the target's shape."""
    return Expand(x, shape=tuple(target.payload.shape))


@decompose_rule("full_like", small=True)
def full_like(like: Tensor, *, value: Any, dtype: Any = None) -> Tensor:
    """full of the same shape."""
    return Full(shape=tuple(like.payload.shape), value=value, dtype=like.payload.dtype if dtype is None else dtype)


@decompose_rule("reduce_as", small=True)
def reduce_as(x: Tensor, target: Tensor) -> Tensor:
    """The sum over the dimensions that the target lacks, and over those of which it has one element."""
    own, wanted = tuple(x.payload.shape), tuple(target.payload.shape)
    lead = len(own) - len(wanted)
    new = tuple(range(lead))
    stretched = tuple(lead + i for i, d in enumerate(wanted) if same(d, 1) and not same(own[lead + i], 1))
    out = Sum(x, axis=new + stretched, keepdim=bool(stretched))
    return Reshape(out, shape=wanted) if new and stretched else out


@decompose_rule("add_n")
def add_n(*inputs: Tensor) -> Tensor:
    """One sum after the other."""
    out = inputs[0]
    for x in inputs[1:]:
        out = add(out, x)
    return out
