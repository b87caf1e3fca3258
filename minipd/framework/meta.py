"""Shape and dtype without data."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes

__all__: list[str] = []


class Meta:
    """What a shape rule returns, and what a gradient saves of an operand whose values it does not need.

    shape: tuple of `int | DimExpr`.  dtype: `numpy.dtype`.  Everything with these two attributes serves as a meta:
    arrays, IR values and distributed values too.

    >>> Meta((2, 3), np.dtype("float32"))
    f32[2, 3]
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple, dtype: np.dtype):
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meta) and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return describe(self)


def describe(x: Any) -> str:
    """`f32[2, 3]` for anything with a shape and a dtype; the repr of everything else (Python scalars)."""
    if not hasattr(x, "dtype"):
        return repr(x)
    d = x.dtype.np if isinstance(x.dtype, dtypes.DataType) else x.dtype
    return f"{dtypes.of(d).short}[{', '.join(map(str, x.shape))}]"
