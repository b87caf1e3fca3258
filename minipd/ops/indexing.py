"""`x[...]` and `x[...] = v`: ints, slices with any stride, Ellipsis, None, int arrays and masks, in any mixture.

An index is taken apart into three steps, which writing goes back through:

    basic     ints, slices, None and Ellipsis: a strided part of x, with int dimensions dropped and new ones inserted.
              It is a view, and with no further step, reading is a view and writing is one `set_value`.
    arrays    numbers along some dimensions of that part, broadcast against each other: a `gather`, or `gather_nd` of
              the tuples that they form; writing is one `index_put`.
    masks     a mask of m dimensions stands for m arrays, the places where it holds: they depend on values.  Only a
              write of what does not depend on how many there are goes without, through `where`.

The rules are numpy's, but for ints beside arrays: they drop their dimension first, as in Paddle, and do not count as
arrays.  Dimensions that arrays make stand where those that they name stood, or in front if those are apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.framework.meta import describe
from minipd.framework.spelling import spells
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.ops.broadcast import Expand
from minipd.ops.by_number import Gather, GatherNd, IndexPut
from minipd.ops.cast import cast
from minipd.ops.creation import to_tensor
from minipd.ops.indices import Index, parse_index, part_of_one
from minipd.ops.joining import Concat
from minipd.ops.math import where
from minipd.ops.reshape import Reshape, Squeeze, Transpose, Unsqueeze
from minipd.ops.shapes import agree, broadcast_shapes
from minipd.ops.slicing import SetValue, Slice, listed, normalized_part, take_part

__all__: list[str] = []


# ---------------------------------------------------------------------------------------------------- reading
def getitem(x: Tensor, index: Any) -> Tensor:
    """`x[index]`: a view of x, or, by arrays and masks, a copy.

    Raises: IndexError for a number outside of its dimension; TypeError for a mask while tracing, for how many elements
    it selects depends on values.

    >>> from minipd.ops.creation import arange
    >>> x = arange(6).reshape([2, 3])
    >>> x[..., ::-2].tolist(), x[[1, 0], [2, 0]].tolist(), x[x > 3].tolist()
    ([[2, 0], [5, 3]], [5, 0], [4, 5])
    """
    if type(index) is slice and x.payload.shape:            # the most frequent ones need no taking apart
        n = x.payload.shape[0]
        start, end, stride = normalized_part(index, n)
        if stride == 1 and (start, end) != (0, n):
            return _rows(x, start, end)
        return take_part(x, (0,), ((start, end, stride),))
    if type(index) is int and x.payload.shape:
        start, end, _ = part_of_one(x, 0, index)
        return Squeeze(x if (start, end) == (0, x.payload.shape[0]) else _rows(x, start, end), axis=(0,))
    found = parse_index(x, index)
    y = _basic(x, found)
    if not found.arrays:
        return y
    arrays = numbers_of(found.arrays)
    if len(arrays) == 1:
        return Gather(y, arrays[0][1], axis=arrays[0][0])
    perm, at = _arrays_first(y.ndim, [axis for axis, _ in arrays])
    tuples = tuples_of([numbers for _, numbers in arrays])
    read = GatherNd(Transpose(y, perm=perm), tuples)
    return Transpose(read, perm=_moved_to(at, tuples.ndim - 1, read.ndim)) if at else read


def _rows(x: Tensor, start: Any, end: Any) -> Tensor:
    if not spells():
        return Slice(x, axes=(0,), starts=(start,), ends=(end,))
    return Slice(x, axes=(0,), starts=listed((start,)), ends=listed((end,)))


def _basic(x: Tensor, found: Index) -> Tensor:
    y = take_part(x, found.axes, found.parts)
    if found.dropped:
        y = Squeeze(y, axis=found.dropped)
    return Unsqueeze(y, axis=found.new) if found.new else y


def numbers_of(arrays: tuple) -> list[tuple[int, Tensor]]:
    """Masks as numbers: of m dimensions, m arrays.  Raises: TypeError while tracing."""
    out = []
    for axis, array in arrays:
        if array.payload.dtype == dtypes.bool.np:
            places = np.nonzero(array.values("x[mask], whose size depends on the mask's values"))
            out += [(axis + i, Tensor(p)) for i, p in enumerate(places)]
        else:
            out.append((axis, array))
    return out


def tuples_of(arrays: list[Tensor]) -> Tensor:
    """The tuples that broadcast arrays of numbers form.   [...] each -> int64 [..., how many]"""
    try:
        shape = broadcast_shapes("arrays of an index", *(a.payload.shape for a in arrays))
    except ValueError as error:
        raise IndexError(str(error)) from None
    wide = [cast(a, dtypes.int64) for a in arrays]
    return Concat(*(Unsqueeze(a if a.payload.shape == shape else Expand(a, shape=shape), axis=(len(shape),))
                    for a in wide), axis=len(shape))


def _arrays_first(ndim: int, axes: list[int]) -> tuple[tuple[int, ...], int]:
    """(the order of dimensions in which those that arrays name come first, where what arrays make is to stand)."""
    others = [i for i in range(ndim) if i not in axes]
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    return (*axes, *others), axes[0] if adjacent else 0


def _moved_to(at: int, n: int, ndim: int) -> tuple[int, ...]:
    """The order of dimensions that moves the first n behind the `at` ones that follow."""
    return (*range(n, n + at), *range(n), *range(n + at, ndim))


# ---------------------------------------------------------------------------------------------------- writing
def setitem(x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, in place; the value broadcasts.  Where arrays name a place twice, the last value stays.

    >>> from minipd.ops.creation import zeros
    >>> x = zeros([2, 2])
    >>> x[1] = 5.0
    >>> x[x == 0.0] = -1.0
    >>> x.tolist()
    [[-1.0, -1.0], [5.0, 5.0]]
    """
    found = parse_index(x, index)
    if not isinstance(value, Tensor):
        value = value if isinstance(value, (bool, int, float, complex)) else to_tensor(value)
    value = cast(value, x.dtype) if isinstance(value, Tensor) else _number_for(x, value)
    if not found.arrays:
        write(x, SetValue, _for_part(x, found, value), **found.attrs())
    elif found.whole and _bytuples_of(found, value) and found.arrays[0][0] == 0:
        tuples = tuples_of([numbers for _, numbers in numbers_of(found.arrays)])
        write(x, IndexPut, tuples, _fitted(value, tuples.ndim - 1 + x.ndim - tuples.payload.shape[-1]))
    else:
        write(x, index_written, value, found=found)


def _number_for(x: Tensor, value: Any) -> Any:
    """A Python number that x can hold; ints wrap around, as a tensor's would that is cast."""
    own = x.payload.dtype
    if own in dtypes.INTS and isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"x[...] = v: expected a finite number for x = {describe(x.payload)}, got {value}; ints have "
                         "no infinity and no NaN")
    if isinstance(value, complex) and own not in dtypes.COMPLEX:
        raise TypeError(f"x[...] = v: expected a real number for x = {describe(x.payload)}, got {value}")
    if own in dtypes.INTS and type(value) is int and not np.can_cast(np.min_scalar_type(value), own):
        return value % 2 ** (8 * own.itemsize) if own.kind == "u" else int(np.array(value).astype(own))
    return value


def index_written(x: Tensor, value: Any, *, found: Index) -> Tensor:
    """x with `value` at an index with arrays or masks."""
    y = _basic(x, found)
    if not _bytuples_of(found, value):
        at, mask = found.arrays[0]
        rest = y.ndim - at - mask.ndim
        value = _fitted(value, rest) if isinstance(value, Tensor) else y.payload.dtype.type(value).item()
        y = where(Reshape(mask, shape=(*mask.payload.shape, *(1,) * rest)), value, y)
    else:
        arrays = numbers_of(found.arrays)
        perm, at = _arrays_first(y.ndim, [axis for axis, _ in arrays])
        tuples = tuples_of([numbers for _, numbers in arrays])
        made, ndim = tuples.ndim - 1, tuples.ndim - 1 + y.ndim - len(arrays)
        value = _fitted(value, ndim)
        if at and isinstance(value, Tensor) and value.ndim:
            value = Unsqueeze(value, axis=tuple(range(ndim - value.ndim))) if value.ndim < ndim else value
            value = Transpose(value, perm=(*range(at, at + made), *range(at), *range(at + made, ndim)))
        written = IndexPut(Transpose(y, perm=perm), tuples, value)
        y = Transpose(written, perm=tuple(sorted(range(y.ndim), key=perm.__getitem__)))
    return y if found.whole else SetValue(x, _for_part(x, found, y), **found.attrs())


def _bytuples_of(found: Index, value: Any) -> bool:
    """Whether a write has to know the numbers: not if the index has one mask, and the value is the same for all that it
    selects."""
    (at, mask), *more = found.arrays
    if more or mask.payload.dtype != dtypes.bool.np:
        return True
    if not isinstance(value, Tensor):
        return False
    rest = found.ndim - at - mask.ndim
    return not all(same(d, 1) for d in value.payload.shape[:max(value.ndim - rest, 0)])


def _fitted(value: Any, ndim: int) -> Any:
    """A value without leading dimensions of size 1 beyond `ndim`."""
    extra = value.ndim - ndim if isinstance(value, Tensor) else 0
    if extra > 0 and all(same(d, 1) for d in value.payload.shape[:extra]):
        return Squeeze(value, axis=tuple(range(extra)))
    return value


def _for_part(x: Tensor, found: Index, value: Any) -> Any:
    """A value for what the basic step reads, as one for the strided part: with dropped dimensions, of size 1, and
    without new ones."""
    if not isinstance(value, Tensor):
        return value
    value = _fitted(value, found.ndim)
    if found.new and value.ndim:
        if value.ndim < found.ndim:
            value = Unsqueeze(value, axis=tuple(range(found.ndim - value.ndim)))
        if value.ndim > found.ndim or not all(agree(value.payload.shape[a], 1, "x[...] = v") for a in found.new):
            raise ValueError(f"x[...] = v: expected a value of at most {found.ndim} dimensions, of size 1 where the "
                             f"index has None (dimensions {list(found.new)}), got {describe(value.payload)}")
        value = Squeeze(value, axis=found.new)
    if found.dropped and value.ndim:
        kept = [a for a in range(x.ndim) if a not in found.dropped]
        lead = len(kept) - value.ndim
        if lead < 0:
            raise ValueError(f"x[...] = value: expected a value of at most {len(kept)} dimensions, got "
                             f"{describe(value.payload)}")
        shape = [1] * x.ndim
        for a, n in zip(kept[lead:], value.payload.shape, strict=True):
            shape[a] = n
        value = Reshape(value, shape=tuple(shape))
    return value
