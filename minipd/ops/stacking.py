"""Tensors side by side and apart, by dimension: compositions of concat, stack and slices."""

from __future__ import annotations

import itertools
import math
from typing import Any

from minipd.framework.dim import is_symbolic
from minipd.framework.meta import describe
from minipd.framework.room import require_room
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.broadcast import broadcast_tensors
from minipd.ops.by_number import Gather
from minipd.ops.creation import Full, to_tensor
from minipd.ops.joining import concat, of_one_dtype, split, stack
from minipd.ops.reshape import Reshape, reshape
from minipd.ops.shapes import normalize_axis
from minipd.ops.slicing import SetValue, take_part

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "cartesian_prod", "chunk", "column_stack",
           "combinations", "dsplit", "dstack", "hsplit", "hstack", "meshgrid", "row_stack", "split_with_sizes",
           "tensor_split", "unbind", "unstack", "vsplit", "vstack"]


# ------------------------------------------------------------------------------------------- at least so many
def _each(xs: tuple, f: Any) -> Any:
    """f of one tensor, or a list for several; numbers and lists become tensors."""
    if len(xs) == 1 and isinstance(xs[0], (list, tuple)) and any(isinstance(x, Tensor) for x in xs[0]):
        xs = tuple(xs[0])
    found = [f(x if isinstance(x, Tensor) else to_tensor(x)) for x in xs]
    return found[0] if len(found) == 1 else found


def atleast_1d(*inputs: Any, name: str | None = None) -> Any:
    """Each tensor with at least 1 dimension; a list of several.

    >>> atleast_1d(to_tensor(3)).tolist()
    [3]
    """
    return _each(inputs, lambda x: x if x.ndim else reshape(x, [1]))


def atleast_2d(*inputs: Any, name: str | None = None) -> Any:
    """Each tensor with at least 2 dimensions, new ones in front; a list of several.

    >>> [t.shape for t in atleast_2d(to_tensor(3), to_tensor([1, 2]))]
    [paddle.Size([1, 1]), paddle.Size([1, 2])]
    """
    return _each(inputs, lambda x: x if x.ndim > 1 else Reshape(x, shape=(1, *(x.payload.shape or (1,)))))


def atleast_3d(*inputs: Any, name: str | None = None) -> Any:
    """Each tensor with at least 3 dimensions: [n] becomes [1, n, 1], and [n, m] becomes [n, m, 1].

    >>> atleast_3d(to_tensor([1, 2])).shape
    paddle.Size([1, 2, 1])
    """
    def three(x: Tensor) -> Tensor:
        if x.ndim > 2:
            return x
        n, *m = x.payload.shape or (1,)
        return Reshape(x, shape=(n, *m, 1) if m else (1, n, 1))
    return _each(inputs, three)


# ------------------------------------------------------------------------------------------------- side by side
def _list(what: str, x: Any) -> list[Tensor]:
    """The tensors of a list; of one tensor, its slices.  Raises: ValueError for an empty list."""
    xs = unbind(x) if isinstance(x, Tensor) else list(x)
    if not xs:
        raise ValueError(f"{what}: expected at least one tensor, got an empty list")
    return xs


def hstack(x: Any, name: str | None = None) -> Tensor:
    """The tensors of a list one after the other along the second dimension, or, of 1 dimension, the first.

    >>> hstack([to_tensor([[1], [2]]), to_tensor([[3], [4]])]).tolist()
    [[1, 3], [2, 4]]
    """
    xs = [atleast_1d(t) for t in _list("hstack", x)]
    return concat(xs, 0 if xs[0].ndim == 1 else 1)


def vstack(x: Any, name: str | None = None) -> Tensor:
    """The tensors of a list one after the other along the first dimension; those of 1 dimension are rows.

    >>> vstack([to_tensor([1, 2]), to_tensor([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([atleast_2d(t) for t in _list("vstack", x)], 0)


def row_stack(x: Any, name: str | None = None) -> Tensor:
    """The same as `vstack`."""
    return vstack(x)


def dstack(x: Any, name: str | None = None) -> Tensor:
    """The tensors of a list one after the other along the third dimension.

    >>> dstack([to_tensor([1, 2]), to_tensor([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return concat([atleast_3d(t) for t in _list("dstack", x)], 2)


def column_stack(x: Any, name: str | None = None) -> Tensor:
    """The tensors of a list one after the other along the second dimension; those of 1 dimension are columns.

    >>> column_stack([to_tensor([1, 2]), to_tensor([3, 4])]).tolist()
    [[1, 3], [2, 4]]
    """
    return concat([t if t.ndim > 1 else reshape(t, [-1, 1]) for t in _list("column_stack", x)], 1)


def block_diag(inputs: Any, name: str | None = None) -> Tensor:
    """The matrices of a list along the diagonal of one matrix, 0 elsewhere; [n] counts as one row.

    >>> block_diag([to_tensor([[1], [2]]), to_tensor([3, 4])]).tolist()
    [[1, 0, 0], [2, 0, 0], [0, 3, 4]]
    """
    blocks = of_one_dtype([atleast_2d(t) for t in _list("block_diag", inputs)])
    for t in blocks:
        if t.ndim > 2:
            raise ValueError(f"block_diag: expected tensors of at most 2 dimensions, got {describe(t.payload)}")
    rows, columns = (sum(t.payload.shape[i] for t in blocks) for i in (0, 1))
    out = Full(shape=(rows, columns), value=0, dtype=blocks[0].payload.dtype)
    row = column = 0
    for t in blocks:
        n, m = t.payload.shape
        out = SetValue(out, t, axes=(0, 1), starts=(row, column), ends=(row + n, column + m), strides=(1, 1))
        row, column = row + n, column + m
    return out


# ------------------------------------------------------------------------------------------------ all pairings
@whole
def meshgrid(*args: Any, indexing: str = "ij", name: str | None = None) -> list[Tensor]:
    """Tensors of 1 dimension (or a list of them), each repeated along the dimensions of the others.

    indexing: "ij", or "xy": the first two dimensions exchanged.

    >>> [t.tolist() for t in meshgrid(to_tensor([1, 2]), to_tensor([3, 4, 5]))]
    [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    """
    xs = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
    if indexing not in ("ij", "xy"):
        raise ValueError(f"meshgrid: expected indexing to be ij or xy, got {indexing!r}")
    for t in xs:
        if not isinstance(t, Tensor):
            raise TypeError(f"meshgrid: expected tensors, got {t!r} ({type(t).__name__})")
        if t.ndim > 1:
            raise ValueError(f"meshgrid: expected tensors of at most 1 dimension, got {describe(t.payload)}")
    place = list(range(len(xs)))
    if indexing == "xy":
        place[:2] = place[:2][::-1]
    return broadcast_tensors([Reshape(t, shape=(t.size, *(1,) * (len(xs) - 1 - p))) for t, p in zip(
        xs, place, strict=True)])


def cartesian_prod(x: Any, name: str | None = None) -> Tensor:
    """All pairings of the elements of tensors of 1 dimension, a row each; of one tensor, itself.

    >>> cartesian_prod([to_tensor([1, 2]), to_tensor([5, 6])]).tolist()
    [[1, 5], [1, 6], [2, 5], [2, 6]]
    """
    xs = _list("cartesian_prod", x)
    if len(xs) == 1:
        return xs[0]
    return stack([reshape(t, [-1]) for t in meshgrid(*of_one_dtype(xs))], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False, name: str | None = None) -> Tensor:
    """All choices of r elements of x, of 1 dimension, a row each, in order; `with_replacement`: elements may repeat.

    >>> combinations(to_tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if x.ndim != 1 or r < 0:
        raise ValueError(f"combinations: expected a tensor of 1 dimension and r of at least 0, got "
                         f"{describe(x.payload)} and r = {r}")
    if r == 0:
        return Full(shape=(0,), value=0, dtype=x.payload.dtype)
    n = len(x) + with_replacement * (r - 1)
    require_room("combinations", (math.comb(n, r) if r <= n else 0, r), 8)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(len(x)), r))
    return Gather(x, reshape(to_tensor(chosen, dtype="int64"), [len(chosen), r]), axis=0)


# ------------------------------------------------------------------------------------------------------- apart
@whole
def unbind(input: Tensor, axis: int = 0) -> list[Tensor]:
    """The slices of input along `axis`, without that dimension: views.

    >>> [t.tolist() for t in unbind(to_tensor([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """
    at = normalize_axis("unbind", axis, input.ndim)
    if input.ndim == 0 or is_symbolic(input.payload.shape[at]):
        raise ValueError(f"unbind: expected a dimension of known size, got axis {axis} of {describe(input.payload)}")
    index = (slice(None),) * at
    return [input[(*index, i)] for i in range(input.payload.shape[at])]


@whole
def unstack(x: Tensor, axis: int = 0, num: int | None = None) -> list[Tensor]:
    """The slices of x along `axis`, without that dimension.   num: how many they are, checked"""
    parts = unbind(x, axis)
    if num is not None and num != len(parts):
        raise ValueError(f"unstack: expected {num} slices along axis {axis}, got {describe(x.payload)}")
    return parts


def chunk(x: Tensor, chunks: int, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """x in equal parts along `axis`."""
    return split(x, chunks, axis)


def split_with_sizes(self: Tensor, split_sizes: Any, dim: int = 0) -> list[Tensor]:
    """The tensor in parts of the given sizes along `dim`."""
    return split(self, list(split_sizes), dim)


def tensor_split(x: Tensor, num_or_indices: Any, axis: Any = 0, name: str | None = None) -> list[Tensor]:
    """x in parts along `axis`, as views: n of them, the first ones longer by one where n does not divide the size; or
    before, between and behind the given positions.

    >>> x = to_tensor([1, 2, 3, 4, 5])
    >>> [t.tolist() for t in tensor_split(x, 2)], [t.tolist() for t in tensor_split(x, [1, 3])]
    ([[1, 2, 3], [4, 5]], [[1], [2, 3], [4, 5]])
    """
    at = normalize_axis("tensor_split", axis.item() if isinstance(axis, Tensor) else axis, x.ndim)
    if x.ndim == 0 or is_symbolic(x.payload.shape[at]):
        raise ValueError(f"tensor_split: expected a dimension of known size, got axis {axis} of {describe(x.payload)}")
    n = x.payload.shape[at]
    if isinstance(num_or_indices, int):
        if num_or_indices < 1:
            raise ValueError(f"tensor_split: expected at least 1 part, got {num_or_indices}")
        size, longer = divmod(n, num_or_indices)
        bounds = [i * size + min(i, longer) for i in range(num_or_indices + 1)]
    else:
        bounds = [0, *(slice(None, i).indices(n)[1] for i in num_or_indices), n]
    return [take_part(x, [at], [(start, max(start, end), 1)]) for start, end in itertools.pairwise(bounds)]


def _split_along(what: str, x: Tensor, num_or_indices: Any, axis: int, least: int) -> list[Tensor]:
    if x.ndim < least:
        raise ValueError(f"{what}: expected a tensor of at least {least} dimensions, got {describe(x.payload)}")
    return tensor_split(x, num_or_indices, axis)


def hsplit(x: Tensor, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """`tensor_split` along the second dimension, or, of 1 dimension, the first."""
    return _split_along("hsplit", x, num_or_indices, 1 if x.ndim > 1 else 0, 1)


def vsplit(x: Tensor, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """`tensor_split` along the first dimension, of at least 2."""
    return _split_along("vsplit", x, num_or_indices, 0, 2)


def dsplit(x: Tensor, num_or_indices: Any, name: str | None = None) -> list[Tensor]:
    """`tensor_split` along the third dimension."""
    return _split_along("dsplit", x, num_or_indices, 2, 3)
