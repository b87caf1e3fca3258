"""Orthogonal initialization."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.tensor import Tensor
from minipd.nn.initializer.base import Whole
from minipd.ops.cast import cast
from minipd.ops.creation import full_like
from minipd.ops.math import where
from minipd.ops.matrices.orthogonal import qr
from minipd.ops.matrices.parts import diagonal_of, matrix_transpose
from minipd.ops.random import Gaussian

__all__ = ["Orthogonal"]


class Orthogonal(Whole):
    """A random matrix with orthonormal rows (or columns, if they are fewer), times `gain`.  (Saxe et al. 2014.)

    A tensor of more dimensions is the matrix [first, all others].
    Raises: ValueError for fewer than two dimensions.
    """

    def __init__(self, gain: float = 1.0, name: str | None = None):
        self.gain = gain

    def whole(self, key: Tensor, shape: tuple, dtype: Any) -> Tensor:
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: expected a parameter of at least 2 dimensions, got shape {list(shape)}")
        rows, columns = shape[0], prod(shape[1:])
        long, short = max(rows, columns), min(rows, columns)
        wide = dtypes.float64.np if dtype == dtypes.float64.np else dtypes.float32.np
        q, r = qr(Gaussian(key, shape=(long, short), dtype=wide))
        diagonal = diagonal_of(r)
        q = q * where(diagonal < 0.0, full_like(diagonal, -1.0), full_like(diagonal, 1.0))      # only so evenly spread
        q = q if rows == long else matrix_transpose(q)
        return cast((q * self.gain).reshape(shape), dtypes.of(dtype))
