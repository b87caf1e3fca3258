"""`x[...]` and `x[...] = v`: ints, slices with any stride, Ellipsis and None.

An index is a strided part, then a drop of the int dimensions and an insert of the new ones; so reading is a view, and
writing is one `set_value`.  Index arrays and masks, whose result copies or depends on values, are not among these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.framework.dim import is_symbolic, require_at_least, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.ops.cast import cast
from minipd.ops.creation import to_tensor
from minipd.ops.reshape import Squeeze, Unsqueeze
from minipd.ops.slicing import SetValue, normalized_part, take_part

__all__: list[str] = []


class Part(NamedTuple):
    """An index, taken apart: parts per axis, axes to drop, and positions (in the result) of new dimensions."""

    axes: list[int]
    parts: list[tuple[Any, Any, int]]
    dropped: tuple[int, ...]
    new: tuple[int, ...]


def parse_index(x: Tensor, index: Any) -> Part:
    """Take an index of x apart.

    Raises: IndexError for too many or out-of-range indices; TypeError for kinds that are not basic indexing.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    shape = x.payload.shape
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    if used > len(shape):
        raise IndexError(f"index {index!r}: expected at most {len(shape)} indices for {describe(x.payload)}, "
                         f"got {used}")
    if sum(1 for i in items if i is Ellipsis) > 1:
        raise IndexError(f"index {index!r}: expected at most one Ellipsis")
    if any(i is Ellipsis for i in items):
        at = next(n for n, i in enumerate(items) if i is Ellipsis)
        items[at:at + 1] = [slice(None)] * (len(shape) - used)
    else:
        items += [slice(None)] * (len(shape) - used)
    axes, parts, dropped, new = [], [], [], []
    axis = out = 0
    for item in items:
        if item is None:
            new.append(out)
            out += 1
            continue
        n = shape[axis]
        if isinstance(item, slice):
            part = normalized_part(slice(*(_plain(v) for v in (item.start, item.stop, item.step))), n)
            out += 1
        else:
            i = _int_index(x, index, item)
            if not is_symbolic(n) and not -n <= i < n:
                raise IndexError(f"index {i} is out of range for axis {axis} of {describe(x.payload)}")
            i = i + n if i < 0 else i
            if is_symbolic(n):
                require_at_least(n, i + 1, f"index {index} of a dimension of size {n}")
                require_at_least(i, 0, f"index {index} of a dimension of size {n}")
            part = (i, i + 1, 1)
            dropped.append(axis)
        axes.append(axis)
        parts.append(part)
        axis += 1
    return Part(axes, parts, tuple(dropped), tuple(new))


def _plain(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def _int_index(x: Tensor, index: Any, item: Any) -> int:
    if isinstance(item, bool) or bool(getattr(item, "ndim", 0)) or isinstance(item, (list, str)) or not hasattr(
            item, "__index__"):
        raise TypeError(f"index {index!r} of {describe(x.payload)}: expected ints, slices, None or Ellipsis, got "
                        f"{type(item).__name__}; for rows by number use nn.functional.embedding or take_along_axis, "
                        "for a mask use where")
    return item.__index__()


def getitem(x: Tensor, index: Any) -> Tensor:
    """`x[index]`, a view of x.

    >>> from minipd.ops.creation import arange
    >>> arange(6).reshape([2, 3])[..., ::-2].tolist()
    [[2, 0], [5, 3]]
    """
    part = parse_index(x, index)
    y = take_part(x, part.axes, part.parts)
    if part.dropped:
        y = Squeeze(y, axis=part.dropped)
    return Unsqueeze(y, axis=part.new) if part.new else y


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """`x[index] = value`, in place; the value broadcasts.

    >>> from minipd.ops.creation import zeros
    >>> x = zeros([2, 2])
    >>> x[1] = 5.0
    >>> x.tolist()
    [[0.0, 0.0], [5.0, 5.0]]
    """
    part = parse_index(x, index)
    if not isinstance(value, Tensor):
        value = value if isinstance(value, (int, float)) else to_tensor(value)
    if isinstance(value, Tensor):
        value = cast(value, x.dtype)
        ndim_read = x.ndim - len(part.dropped) + len(part.new)
        extra = value.ndim - ndim_read
        if extra > 0 and all(same(d, 1) for d in value.payload.shape[:extra]):
            value = Squeeze(value, axis=tuple(range(extra)))
        if part.new and value.ndim:
            if value.ndim < ndim_read:
                value = Unsqueeze(value, axis=tuple(range(ndim_read - value.ndim)))
            value = Squeeze(value, axis=part.new)
        if part.dropped and value.ndim:         # dims of the part, with size 1 where an int stood
            lead = ndim_read - len(part.new) - value.ndim
            kept = [a for a in range(x.ndim) if a not in part.dropped]
            shape = [1] * x.ndim
            for n, a in enumerate(kept):
                if n >= lead:
                    shape[a] = value.payload.shape[n - lead]
            if lead < 0:
                raise ValueError(f"x[...] = value: expected a value of at most {len(kept)} dimensions, got "
                                 f"{describe(value.payload)}")
            value = value.reshape(shape)
    write(x, SetValue, value, axes=tuple(part.axes), starts=tuple(p[0] for p in part.parts),
          ends=tuple(p[1] for p in part.parts), strides=tuple(p[2] for p in part.parts))
