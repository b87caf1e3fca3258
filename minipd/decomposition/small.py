"""Rules of operators that are little more than one other: `relu(x)` is `maximum(x, 0)`.

The compiler has loops for most of them, and takes them as they are; a rule is for who knows fewer operators.  They are
marked `small`: their kernels go over memory once, so that nothing is gained by taking a single one apart.
"""

from __future__ import annotations

from typing import Any

from minipd.decomposition.table import decompose_rule
from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import Arange, Full
from minipd.ops.logic import equal
from minipd.ops.math import maximum, minimum, multiply, where
from minipd.ops.random import Uniform
from minipd.ops.reduce import Sum
from minipd.ops.reshape import Reshape
from minipd.ops.slicing import Slice

__all__: list[str] = []


@decompose_rule("relu", small=True)
def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return maximum(x, 0.0 if x.payload.dtype in dtypes.INEXACT else 0)


@decompose_rule("square", small=True)
def square(x: Tensor) -> Tensor:
    """x x."""
    return multiply(x, x)


@decompose_rule("reciprocal", small=True)
def reciprocal(x: Tensor) -> Tensor:
    """1 / x."""
    one: Any = 1.0
    return one / x


@decompose_rule("clip", small=True)
def clip(x: Tensor, *, min: Any, max: Any) -> Tensor:
    """min(max(x, low), high): NaN stays."""
    return minimum(maximum(x, min), max)


@decompose_rule("any", small=True)
def any(x: Tensor, *, axis: tuple, keepdim: bool = False) -> Tensor:
    """Whether more than 0 are true."""
    return Sum(cast(cast(x, dtypes.bool), dtypes.int64), axis=axis, keepdim=keepdim) > 0


# -------------------------------------------------------------------------------------------------------- shapes
@decompose_rule("split", small=True)
def split(x: Tensor, *, sections: tuple, axis: int) -> tuple[Tensor, ...]:
    """A slice for each part."""
    parts, start = [], 0
    for n in sections:
        parts.append(Slice(x, axes=(axis,), starts=(start,), ends=(start + n,)))
        start = start + n
    return tuple(parts)


@decompose_rule("squeeze", small=True)
def squeeze(x: Tensor, *, axis: tuple) -> Tensor:
    """reshape."""
    return Reshape(x, shape=tuple(d for i, d in enumerate(x.payload.shape) if i not in axis))


@decompose_rule("unsqueeze", small=True)
def unsqueeze(x: Tensor, *, axis: tuple) -> Tensor:
    """reshape."""
    sizes = iter(x.payload.shape)
    return Reshape(x, shape=tuple(1 if i in axis else next(sizes) for i in range(x.ndim + len(axis))))


@decompose_rule("numel", small=True)
def numel(x: Tensor) -> Tensor:
    """The product of the sizes, as a constant."""
    return Full(shape=(), value=prod(x.payload.shape), dtype=dtypes.int64.np)


# ------------------------------------------------------------------------------------------------ making numbers
@decompose_rule("eye", small=True)
def eye(*, num_rows: Any, num_columns: Any, dtype: Any) -> Tensor:
    """1 where the number of the row is that of the column."""
    rows, columns = (Arange(start=0, stop=n, step=1, dtype=dtypes.int64.np) for n in (num_rows, num_columns))
    return cast(equal(rows.unsqueeze(1), columns), dtype)


@decompose_rule("dropout", small=True)
def dropout(x: Tensor, key: Tensor, *, p: float, mode: str = "upscale_in_train", window: Any = None) -> Tensor:
    """x / (1 - p) where a number that is drawn is at least p, else 0."""
    draw = Uniform(key, shape=tuple(x.payload.shape), dtype=dtypes.float32.np, window=window)
    scaled = x * (1.0 / (1.0 - p)) if mode == "upscale_in_train" and p < 1 else x
    return where(draw < p, 0.0, scaled)
