"""What an index, the `...` of `x[...]`, says: taken apart into a strided part and arrays (see `indexing`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.dim import is_symbolic, require_at_least, same
from minipd.framework.meta import describe
from minipd.framework.spelling import as_given
from minipd.framework.tensor import Tensor
from minipd.ops.cast import cast
from minipd.ops.creation import to_tensor
from minipd.ops.reshape import Reshape
from minipd.ops.shapes import agree
from minipd.ops.slicing import LAST, listed, normalized_part

__all__: list[str] = []


class Index(NamedTuple):
    """An index, taken apart.

    axes, parts: the strided part of x; dropped: its dimensions that ints stand for; new: the positions of new
    dimensions in what is then read, the view y.  arrays: numbers (or a mask) by the dimension of y that they (its
    first) name, in order.  ndim: how many dimensions y has.
    """

    axes: tuple[int, ...]
    parts: tuple[tuple[Any, Any, int], ...]
    dropped: tuple[int, ...]
    new: tuple[int, ...]
    arrays: tuple[tuple[int, Tensor], ...]
    ndim: int

    @property
    def whole(self) -> bool:
        """Whether the basic step does nothing."""
        return not self.new and not self.axes

    def attrs(self) -> dict[str, Any]:
        """The strided part as attributes of `set_value`."""
        starts, ends, strides = (listed(p[i] for p in self.parts) for i in range(3))
        return {"axes": self.axes, "starts": starts, "ends": ends, "strides": strides}


def parse_index(x: Tensor, index: Any) -> Index:
    """Take an index of x apart.

    Raises: IndexError for too many or out-of-range indices, and masks of another shape; TypeError for what is no index.
    """
    shape = x.payload.shape
    items = [_item(x, index, i) for i in (index if isinstance(index, tuple) else (index,))]
    used = sum(_consumed(i) for i in items)
    if used > len(shape):
        raise IndexError(f"index {_shown(index)}: expected at most {len(shape)} indices for {describe(x.payload)}, "
                         f"got {used}")
    if sum(1 for i in items if i is Ellipsis) > 1:
        raise IndexError(f"index {_shown(index)}: expected at most one Ellipsis")
    at = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    items[at:at + 1] = [slice(None)] * (len(shape) - used)
    axes, parts, dropped, new, arrays = [], [], [], [], []
    axis = out = 0
    for item in items:
        if isinstance(item, Tensor):
            named = _consumed(item)
            if named == 0:                              # a truth value: a new dimension, which it selects or does not
                new.append(out)
                item = Reshape(item, shape=(1,))
            elif item.payload.dtype == dtypes.bool.np:
                _check_mask(x, axis, item)
            arrays.append((out, item))
            axis += named
            out += named or 1
        elif item is None:
            new.append(out)
            out += 1
        else:
            part = (normalized_part(item, shape[axis]) if isinstance(item, slice) else
                    part_of_one(x, axis, item))
            if isinstance(item, slice):
                out += 1
            else:
                dropped.append(axis)
            if part[2] != 1 or not (same(part[0], 0) and same(part[1], shape[axis])) or axis in dropped:
                axes.append(axis)
                parts.append(part)
            axis += 1
    return Index(tuple(axes), tuple(parts), tuple(dropped), tuple(new), tuple(arrays), out)


def _shown(index: Any) -> str:
    """An index in an error: tensors by shape and dtype."""
    if isinstance(index, tuple):
        return f"({', '.join(map(_shown, index))})"
    if isinstance(index, Tensor):
        return describe(index.payload)
    return describe(index) if isinstance(index, np.ndarray) and index.ndim else repr(index)


def _item(x: Tensor, index: Any, item: Any) -> Any:
    """One part of an index as None, Ellipsis, a slice, an int, or a tensor of numbers or truth values."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        if not any((isinstance(item.start, Tensor), isinstance(item.stop, Tensor), isinstance(item.step, Tensor))):
            return item
        return slice(*(v.item() if isinstance(v, Tensor) else v for v in (item.start, item.stop, item.step)))
    if isinstance(item, (list, tuple, range, np.ndarray, bool, np.bool_)):
        item = _array(item)
    if isinstance(item, Tensor):
        if item.payload.dtype == dtypes.bool.np:
            return item
        if item.payload.dtype in dtypes.INTS:
            return item if item.ndim or _valueless(item) else item.item()
    elif hasattr(item, "__index__"):
        return item.__index__()
    raise TypeError(f"index {_shown(index)} of {describe(x.payload)}: expected ints, slices, None, Ellipsis, int "
                    f"arrays or masks, got {_shown(item) if isinstance(item, Tensor) else type(item).__name__}")


def _array(item: Any) -> Any:
    """Nested lists as a tensor; an empty one names nothing."""
    try:
        found = to_tensor(item if isinstance(item, np.ndarray) else list(item) if isinstance(item, (tuple, range)) else
                          item)
    except (TypeError, ValueError):
        return item
    return cast(found, dtypes.int64) if isinstance(item, (list, tuple)) and 0 in found.payload.shape else found


def _valueless(t: Tensor) -> bool:
    """Whether a tensor has no values yet: while tracing."""
    return type(t.payload) is not np.ndarray and not hasattr(t.payload, "placements")


def _consumed(item: Any) -> int:
    """How many dimensions of x a part of an index names."""
    if isinstance(item, Tensor) and item.payload.dtype == dtypes.bool.np:
        return item.ndim
    return 0 if item is None or item is Ellipsis else 1


def _check_mask(x: Tensor, axis: int, mask: Tensor) -> None:
    own = x.payload.shape[axis:axis + mask.ndim]
    if not all(agree(m, n, "the shape of a mask") for m, n in zip(mask.payload.shape, own, strict=True)):
        raise IndexError(f"mask {describe(mask.payload)} of {describe(x.payload)}: expected a mask of shape "
                         f"{list(own)}, as dimensions {axis} to {axis + mask.ndim - 1} have")


def part_of_one(x: Tensor, axis: int, i: int) -> tuple[Any, Any, int]:
    """The part that an int names."""
    n = x.payload.shape[axis]
    if not is_symbolic(n) and not -n <= i < n:
        raise IndexError(f"index {i} is out of range for axis {axis} of {describe(x.payload)}")
    if is_symbolic(n):
        what = f"index {i} of a dimension of size {n}"
        i = i + n if i < 0 else i
        require_at_least(n, i + 1, what)
        require_at_least(i, 0, what)
    elif i < 0:
        return as_given(i + n, i), as_given(i + n + 1, LAST if i == -1 else i + 1), 1
    return i, i + 1, 1
