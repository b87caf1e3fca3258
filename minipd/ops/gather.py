"""Taking elements and slices by number: the public functions of the rows in `by_number`."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import prod
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.by_number import Gather, GatherNd, an_axis, require_index
from minipd.ops.cast import cast
from minipd.ops.division import remainder
from minipd.ops.logic import logical_and
from minipd.ops.making import into
from minipd.ops.math import maximum, minimum, where
from minipd.ops.reshape import Reshape

__all__ = ["gather", "gather_nd", "index_select", "shard_index", "take"]


def number_list(what: str, index: Any) -> Tensor:
    """An index of one dimension: [n], or [n, 1] as Paddle allows; a 0-D one stays.

    Raises: ValueError for other shapes, TypeError if it is no int tensor.
    """
    if not isinstance(index, Tensor):
        raise TypeError(f"{what}: expected an int tensor as index, got {type(index).__name__}")
    require_index(what, index.payload)
    shape = index.payload.shape
    if len(shape) == 2 and shape[1] == 1:
        return Reshape(index, shape=(shape[0],))
    if len(shape) > 1:
        raise ValueError(f"{what}: expected an index of at most 1 dimension, got {describe(index.payload)}")
    return index


def gather(x: Tensor, index: Tensor, axis: Any = None, name: str | None = None, out: Tensor | None = None) -> Tensor:
    """The slices of x at the numbers `index` along `axis` (None: the first).   index: int [n], or 0-D: one slice.

    Raises: IndexError for a number outside of the dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> gather(to_tensor([[1, 2], [3, 4]]), to_tensor([1, 1, 0]), axis=1).tolist()
    [[2, 2, 1], [4, 4, 3]]
    """
    axis = axis.item() if isinstance(axis, Tensor) else axis
    axis = an_axis("gather", 0 if axis is None else axis, x)
    found = Gather(x, number_list("gather", index), axis=axis)
    return into(out, found)


@whole
def index_select(x: Tensor, index: Tensor, axis: int = 0, name: str | None = None, *,
                 out: Tensor | None = None) -> Tensor:
    """The slices of x at the numbers `index` along `axis`.   index: int [n]

    >>> from minipd.ops.creation import to_tensor
    >>> index_select(to_tensor([5, 6, 7]), to_tensor([2, 0])).tolist()
    [7, 5]
    """
    return gather(x, index, axis, out=out)


def take(x: Tensor, index: Tensor, mode: str = "raise", name: str | None = None) -> Tensor:
    """Elements of x by their number in row-major order, in the shape of `index`.

    mode: for numbers that no element has "raise" IndexError, "wrap" around, or "clip" to the first or last; then
    negative numbers count from the end only where they wrap.

    >>> from minipd.ops.creation import arange, to_tensor
    >>> take(arange(6).reshape([2, 3]), to_tensor([[4, -1]])).tolist(), take(arange(6), to_tensor([7]), "wrap").tolist()
    ([[4, 5]], [1])
    """
    require_index("take", index.payload)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"take: expected mode to be raise, wrap or clip, got {mode!r}")
    n = prod(x.payload.shape)
    index = cast(index, dtypes.int64)
    if mode != "raise":
        index = remainder(index, n) if mode == "wrap" else minimum(maximum(index, 0), n - 1)
    return Gather(Reshape(x, shape=(n,)), index, axis=0)


def shard_index(input: Tensor, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Tensor:
    """Numbers below `index_num` as the shard `shard_id` of `nshards` equal ones counts them, `ignore_value` for those
    of others.

    >>> from minipd.ops.creation import to_tensor
    >>> shard_index(to_tensor([[16], [1]]), index_num=20, nshards=2, shard_id=0).tolist()
    [[-1], [1]]
    """
    require_index("shard_index", input.payload)
    if not 0 <= shard_id < nshards:
        raise ValueError(f"shard_index: expected 0 <= shard_id < nshards, got {shard_id} and {nshards}")
    size = -(-index_num // nshards)
    first = shard_id * size
    return where(logical_and(input >= first, input < first + size), input - first, ignore_value)


@whole
def gather_nd(x: Tensor, index: Tensor, name: str | None = None) -> Tensor:
    """The slices of x at tuples of numbers, which stand in the last dimension of `index`.

    index: int [..., k] -> [..., dimensions k.. of x].  Raises: IndexError for a number outside of its dimension.

    >>> from minipd.ops.creation import to_tensor
    >>> gather_nd(to_tensor([[1, 2], [3, 4]]), to_tensor([[1, 0], [0, 1]])).tolist()
    [3, 2]
    """
    require_index("gather_nd", index.payload)
    return GatherNd(x, index)
