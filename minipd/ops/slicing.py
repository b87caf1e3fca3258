"""Reading and writing strided parts.

Strided parts are normalised before dispatch: along axis a, element i is `range(start, end, stride)[i]`; `end` may be -1
with a negative stride, and means "past the front".  So every size follows from `range`, and no stride needs its own
case, in the gradient either (the gradient of a read is a write into zeros).
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

from minipd.framework.dim import DimExpr, ceil_div, is_symbolic, maximum, minimum, require_at_least, same
from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.spelling import SpelledInt, as_given, spells
from minipd.framework.tensor import Tensor
from minipd.ops.broadcast import as_operand, reduce_to
from minipd.ops.creation import FullLike
from minipd.ops.reshape import Unsqueeze
from minipd.ops.shapes import agree, normalize_axis

__all__ = ["slice", "strided_slice"]


def part_size(start: Any, end: Any, stride: int) -> Any:
    """How many elements `range(start, end, stride)` has; symbolic bounds are not known to be in order only if the
    stride is not 1."""
    if is_symbolic(start) or is_symbolic(end):
        return end - start if stride == 1 else maximum(ceil_div(end - start, stride), 0)
    return len(range(start, end, stride))


def _part_shape(shape: tuple, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> tuple:
    out = list(shape)
    for a, b, e, s in zip(axes, starts, ends, strides, strict=True):
        out[a] = part_size(b, e, s)
    return tuple(out)


def _part_index(ndim: int, axes: tuple, starts: tuple, ends: tuple, strides: tuple) -> tuple:
    index: list[Any] = [WHOLE] * ndim
    for a, b, e, s in zip(axes, starts, ends, strides, strict=True):
        index[a] = builtins.slice(b, None if s < 0 and e < 0 else e, s)
    return tuple(index)


WHOLE = builtins.slice(None)


@op("slice", Trait.VIEW, Trait.EXACT)
class Slice:
    """x[starts[i] : ends[i]] along axes[i]."""

    mutable = ("starts", "ends")

    def infer_meta(x, *, axes, starts, ends):
        return Meta(_part_shape(x.shape, axes, starts, ends, (1,) * len(axes)), x.dtype)

    def kernel(xp, x, *, axes, starts, ends):
        if axes == (0,):
            return x[starts[0]:ends[0]]
        return x[_part_index(x.ndim, axes, starts, ends, (1,) * len(axes))]

    def put_back(base, view, *, axes, starts, ends):
        return SetValue(base, view, axes=axes, starts=starts, ends=ends, strides=(1,) * len(axes))

    def vjp_x(g, x: Meta, axes, starts, ends):
        return SetValue(_zeros_as(g, x), g, axes=axes, starts=starts, ends=ends, strides=(1,) * len(axes))


#: how Paddle writes an end that is left out, going forward or backward
LAST, BEFORE_FIRST = 2 ** 31 - 1, -2 ** 31


@op("strided_slice", Trait.VIEW, Trait.EXACT)
class StridedSlice:
    """Elements starts[i], starts[i] + strides[i], ... before ends[i], along axes[i]."""

    mutable = ("starts", "ends", "strides")

    def infer_meta(x, *, axes, starts, ends, strides):
        return Meta(_part_shape(x.shape, axes, starts, ends, strides), x.dtype)

    def kernel(xp, x, *, axes, starts, ends, strides):
        return x[_part_index(x.ndim, axes, starts, ends, strides)]

    def put_back(base, view, *, axes, starts, ends, strides):
        return SetValue(base, view, axes=axes, starts=starts, ends=ends, strides=strides)

    def vjp_x(g, x: Meta, axes, starts, ends, strides):
        return SetValue(_zeros_as(g, x), g, axes=axes, starts=starts, ends=ends, strides=strides)


@op("set_value", Trait.EXACT, Trait.INPLACE)
class SetValue:
    """x with the part named by axes, starts, ends and strides replaced by `value`, which broadcasts to that part."""

    inplace = {0: 0}
    mutable = ("starts", "ends", "strides")

    def infer_meta(x, value, *, axes, starts, ends, strides):
        part = _part_shape(x.shape, axes, starts, ends, strides)
        shape = value.shape if hasattr(value, "shape") else ()
        lead = len(shape) - len(part)
        if any(not same(d, 1) for d in shape[:max(lead, 0)]) or any(
                not same(v, 1) and not agree(v, p, "set_value: the sizes of value and part")
                for v, p in zip(reversed(shape), reversed(part), strict=False)):
            raise ValueError(f"set_value: expected a value that broadcasts to the part written, of shape {list(part)}, "
                             f"got shape {list(shape)}")
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, value, *, axes, starts, ends, strides):
        out = xp.array(x)
        out[_part_index(x.ndim, axes, starts, ends, strides)] = value
        return out

    def kernel_out(xp, out, x, value, *, axes, starts, ends, strides):
        if out is not x:
            out[...] = x
        out[_part_index(x.ndim, axes, starts, ends, strides)] = value

    def vjp_x(g, axes, starts, ends, strides):
        return SetValue(g, 0.0, axes=axes, starts=starts, ends=ends, strides=strides)

    def vjp_value(g, value: Meta, axes, starts, ends, strides):
        part = StridedSlice(g, axes=axes, starts=starts, ends=ends, strides=strides)
        lead = len(value.shape) - part.ndim
        if lead > 0:                                     # a value of shape [1, ..., part]
            part = Unsqueeze(part, axis=tuple(range(lead)))
        return reduce_to(part, value)


def _zeros_as(g: Tensor, like: Any) -> Tensor:
    return FullLike(as_operand(like), value=0.0, dtype=g.payload.dtype)


# ------------------------------------------------------------------------------------------- public functions
def slice(input: Tensor, axes: Any, starts: Any, ends: Any) -> Tensor:
    """input[starts[i] : ends[i]] along axes[i], by Python's rules for slices."""
    return strided_slice(input, axes, starts, ends, [1] * len(axes))


def strided_slice(x: Tensor, axes: Any, starts: Any, ends: Any, strides: Any, name: str | None = None) -> Tensor:
    """x[starts[i] : ends[i] : strides[i]] along axes[i], by Python's rules for slices.

    >>> from minipd.ops.creation import arange
    >>> strided_slice(arange(5), [0], [4], [0], [-3]).tolist()
    [4, 1]
    """
    where_ = [normalize_axis("slice", a, x.ndim) for a in axes]
    if len(set(where_)) != len(where_):
        raise ValueError(f"slice: axes {list(axes)} name a dimension of the {x.ndim}-D tensor twice")
    parts = [normalized_part(builtins.slice(_int(b), _int(e), _int(s)), x.payload.shape[a])
             for a, b, e, s in zip(where_, starts, ends, strides, strict=True)]
    return take_part(x, where_, parts)


def _int(v: Any) -> Any:
    return v.item() if isinstance(v, Tensor) else v


def normalized_part(s: Any, n: Any) -> tuple[Any, Any, int]:
    """A Python slice of a dimension of size n as (start, end, stride) with start and end inside.

    >>> from builtins import slice
    >>> normalized_part(slice(4, None, -3), 5), normalized_part(slice(1, 99), 5), normalized_part(slice(3, 1), 5)
    ((4, -1, -3), (1, 5, 1), (3, 3, 1))
    """
    if isinstance(s.start, Tensor) or isinstance(s.stop, Tensor):
        s = builtins.slice(_int(s.start), _int(s.stop), s.step)
    for v in (s.start, s.stop, s.step):
        if v is not None and not is_symbolic(v) and not hasattr(v, "__index__"):
            raise TypeError(f"slice: expected ints or None as start, stop and step, got {v!r}")
    if s.step == 0:
        raise ValueError("slice: expected a step other than 0, got 0; a slice goes forward or backward")
    if DimExpr in (type(n), type(s.start), type(s.stop)):
        if s.step not in (None, 1):
            return _strided_part(s, n)
        if _counts_from_front(s.start) and s.stop is not None and _counts_from_front(s.stop):
            start = 0 if s.start is None else s.start.__index__()
            return start, maximum(_no_more(s.stop.__index__(), n), start), 1
        start, end = (_from_front(v, n, default) for v, default in ((s.start, 0), (s.stop, n)))
        what = f"slice {start}:{end} of a dimension of size {n}"    # Python would clip, and S0-1 be Max(S0-1,0)
        require_at_least(start, 0, what)
        require_at_least(end, start, what)
        require_at_least(n, end, what)
        return start, end, 1
    start, end, stride = s.indices(n)
    if not range(start, end, stride):                   # a start of -1, before the first, would mean the last again
        start = end = max(start, 0)
    if not spells():
        return start, end, stride
    first, last = (0, LAST) if stride > 0 else (LAST, BEFORE_FIRST)
    return (as_given(start, first if s.start is None else s.start.__index__()),
            as_given(end, last if s.stop is None else s.stop.__index__()), stride)


def listed(values: Iterable) -> tuple:
    """Starts, or ends, as one attribute, which remembers how they were given."""
    values = tuple(values)
    if not any(isinstance(v, SpelledInt) for v in values):
        return values
    return as_given(tuple(int(v) if isinstance(v, SpelledInt) else v for v in values),
                    tuple(v.given if isinstance(v, SpelledInt) else v for v in values))


def _strided_part(s: Any, n: Any) -> tuple[Any, Any, int]:
    """The same of a symbolic dimension with a stride other than 1: clipped as Python clips, whatever the size is."""
    step = s.step.__index__()
    first, last = (0, n) if step > 0 else (-1, n - 1)
    start, end = (minimum(maximum(_from_front(v, n, default), first), last) for v, default in (
        (s.start, first if step > 0 else last), (s.stop, last if step > 0 else first)))
    inside = maximum(start, 0)              # a start of -1, before the first, would mean the last; that part is empty
    return inside, end + (inside - start), step


def _counts_from_front(v: Any) -> bool:
    """Whether an end of a slice is at the same place, or behind the last element, whatever the size is."""
    return v is None or not is_symbolic(v) and v >= 0


def _no_more(end: int, n: DimExpr) -> Any:
    """The end of a slice of a dimension of size n, as Python clips it."""
    return end if (n - end).bounds()[0] >= 0 else minimum(n, end)       # type: ignore[union-attr]


def _from_front(v: Any, n: Any, default: Any) -> Any:
    if v is None:
        return default
    return v + n if not is_symbolic(v) and v < 0 else v


def take_part(x: Tensor, axes: Sequence[int], parts: Sequence[tuple]) -> Tensor:
    """The strided part of x; x itself if that is everything."""
    shape = x.payload.shape
    kept = [(a, *p) for a, p in zip(axes, parts, strict=True) if p != (0, shape[a], 1)]
    if not kept:
        return x
    kept_axes, starts, ends, strides = zip(*kept, strict=True)
    if spells():
        starts, ends = listed(starts), listed(ends)
    if strides.count(1) == len(strides):
        return Slice(x, axes=kept_axes, starts=starts, ends=ends)
    return StridedSlice(x, axes=kept_axes, starts=starts, ends=ends, strides=strides)


def leading_part(what: str, x: Tensor, indices: Tensor, but: int | None = None) -> Tensor:
    """The leading part of x that has the sizes of the indices; dimension `but` stays whole."""
    own, got = x.payload.shape, indices.payload.shape
    fits = len(own) == len(got) and all(i == but or is_symbolic(n) or is_symbolic(m) or n <= m
                                        for i, (n, m) in enumerate(zip(got, own, strict=True)))
    if not fits:
        raise ValueError(f"{what}: expected indices of at most the sizes of {describe(x.payload)}, got "
                         f"{describe(indices.payload)}")
    axes = [i for i in range(len(own)) if i != but and not same(own[i], got[i])]
    return take_part(x, axes, [(0, got[i], 1) for i in axes])
