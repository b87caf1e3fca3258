"""Numbers in even steps, and matrices of ones and zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.room import require_room
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import Expand
from minipd.ops.cast import cast
from minipd.ops.creation import arange, ones
from minipd.ops.joining import Concat
from minipd.ops.making import makes
from minipd.ops.math import pow
from minipd.ops.reorder import Flip
from minipd.ops.reshape import Unsqueeze
from minipd.ops.scan import cumprod

__all__ = ["eye", "linspace", "logspace", "range", "tril_indices", "triu_indices", "vander"]


@op("linspace")
class Linspace:
    """`num` numbers in even steps from `start` to `stop`, both included."""

    def infer_meta(*, start, stop, num, dtype):
        return Meta((num,), dtype)

    def kernel(xp, *, start, stop, num, dtype):
        return xp.linspace(start, stop, num).astype(dtype)

    def kernel_out(xp, out, *, start, stop, num, dtype):
        out[...] = xp.linspace(start, stop, num)


@op("eye", Trait.EXACT)
class Eye:
    """1 on the main diagonal, 0 elsewhere."""

    def infer_meta(*, num_rows, num_columns, dtype):
        return Meta((num_rows, num_columns), dtype)

    def kernel(xp, *, num_rows, num_columns, dtype):
        return xp.eye(num_rows, num_columns, dtype=dtype)

    def kernel_out(xp, out, *, num_rows, num_columns, dtype):
        out[...] = xp.eye(num_rows, num_columns, dtype=out.dtype)


def _number(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def _count(what: str, n: Any) -> Any:
    n = _number(n)
    if n < 0:
        raise ValueError(f"{what}: expected at least 0 numbers, got {n}")
    return n


@makes
def linspace(start: Any, stop: Any, num: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """`num` numbers in even steps from `start` to `stop`, both included.   dtype: the default dtype, unless given

    >>> linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    return Linspace(start=_number(start), stop=_number(stop), num=_count("linspace", num),
                    dtype=dtypes.to_np(dtypes.get_default_dtype() if dtype is None else dtype))


def logspace(start: Any, stop: Any, num: Any, base: Any = 10.0, dtype: Any = None, name: str | None = None) -> Tensor:
    """base ** e for `num` exponents e in even steps from `start` to `stop`, both included.

    >>> logspace(0, 3, 4, base=2.0).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    exponents = linspace(start, stop, num, "float64")
    return cast(pow(float(_number(base)), exponents), dtypes.get_default_dtype() if dtype is None else dtype)


@makes
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = None, name: str | None = None) -> Tensor:
    """1 on the main diagonal, 0 elsewhere; square unless `num_columns` is given.

    >>> eye(2, 3, "int32").tolist()
    [[1, 0, 0], [0, 1, 0]]
    """
    rows = _count("eye", num_rows)
    columns = rows if num_columns is None else _count("eye", num_columns)
    return Eye(num_rows=rows, num_columns=columns,
               dtype=dtypes.to_np(dtypes.get_default_dtype() if dtype is None else dtype))


@makes
def range(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, name: str | None = None) -> Tensor:
    """start, start + step, ... up to `end`, which is included; `range(n)` counts from 0.   Deprecated: see `arange`

    >>> range(1, 2, 0.5).tolist()
    [1.0, 1.5, 2.0]
    """
    if end is None:
        start, end = 0, start
    start, end, step = _number(start), _number(end), _number(step)
    if step == 0:
        raise ValueError("range: step must not be 0")
    count = max(0, math.floor((end - start) / step) + 1)
    return cast(arange(count) * step + start, dtypes.get_default_dtype() if dtype is None else dtype)


def _triangle(what: str, indices: Any, row: int, col: int, offset: int, dtype: Any) -> Tensor:
    rows, columns = _count(what, row), _count(what, col)
    require_room(what, (rows, columns))
    return Tensor(np.stack(indices(rows, offset, columns)).astype(dtypes.to_np(dtype)))


def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Rows and columns of the elements of the lower triangle of a matrix, in row-major order: [2, how many].

    >>> tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle("tril_indices", np.tril_indices, row, col, offset, dtype)


def triu_indices(row: int, col: int | None = None, offset: int = 0, dtype: Any = "int64") -> Tensor:
    """Rows and columns of the elements of the upper triangle of a matrix, in row-major order: [2, how many].

    >>> triu_indices(2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle("triu_indices", np.triu_indices, row, row if col is None else col, offset, dtype)


def vander(x: Tensor, n: int | None = None, increasing: bool = False, name: str | None = None) -> Tensor:
    """The powers of x, of 1 dimension, side by side: n (by default as many as x has elements), the 0-th in the last
    column, or, if `increasing`, in the first.

    >>> from minipd.ops.creation import to_tensor
    >>> vander(to_tensor([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    if x.ndim != 1:
        raise ValueError(f"vander: expected a tensor of 1 dimension, got {describe(x.payload)}")
    n = _count("vander", x.payload.shape[0] if n is None else n)
    if n == 0:
        return ones([x.payload.shape[0], 0], x.dtype)
    factors = Expand(Unsqueeze(x, axis=(1,)), shape=(x.payload.shape[0], n - 1))
    powers = cumprod(Concat(ones([x.payload.shape[0], 1], x.dtype), factors, axis=1), 1)
    return powers if increasing else Flip(powers, axis=(1,))
