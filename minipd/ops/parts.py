"""Parts of a tensor by where they begin and how large they are, and tensors with a part replaced."""

from __future__ import annotations

from typing import Any

from minipd.framework.dim import is_symbolic, require_at_least, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.ops.by_number import an_axis
from minipd.ops.cast import cast
from minipd.ops.creation import shape_tuple, sizes
from minipd.ops.reshape import Unsqueeze
from minipd.ops.slicing import SetValue, normalized_part, take_part

__all__ = ["crop", "narrow", "select_scatter", "slice_scatter"]


def crop(x: Tensor, shape: Any = None, offsets: Any = None, name: str | None = None) -> Tensor:
    """The part of x of the given shape that begins at `offsets` (by default at 0).   -1: all that is left

    >>> from minipd.ops.creation import arange
    >>> crop(arange(9).reshape([3, 3]), [2, -1], [0, 1]).tolist()
    [[1, 2], [4, 5]]
    """
    own = x.payload.shape
    first = (0,) * x.ndim if offsets is None else shape_tuple("crop", offsets)
    given = list(own) if shape is None else list(sizes(shape))
    if len(first) != x.ndim or len(given) != x.ndim:
        raise ValueError(f"crop: expected a size and an offset for each dimension of {describe(x.payload)}, got "
                         f"{given} and {list(first)}")
    ends = [n if same(d, -1) else f + d for n, f, d in zip(own, first, given, strict=True)]
    for n, end in zip(own, ends, strict=True):
        require_at_least(n, end, f"crop of {describe(x.payload)} to {given} from {list(first)}: the dimension")
    return take_part(x, list(range(x.ndim)), [(f, end, 1) for f, end in zip(first, ends, strict=True)])


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices along `dim`, from `start` on: a view.   start: an int or a 0-D int tensor, < 0 from the end

    >>> from minipd.ops.creation import arange
    >>> narrow(arange(5), 0, -3, 2).tolist()
    [2, 3]
    """
    at = an_axis("narrow", dim, input)
    n = input.payload.shape[at]
    start = start.item() if isinstance(start, Tensor) else start
    begin = start + n if not is_symbolic(start) and start < 0 else start
    for least, most in ((0, begin), (0, length), (begin + length, n)):
        require_at_least(most, least, f"narrow: {length} slices from {start} along axis {at} of "
                                      f"{describe(input.payload)}")
    return take_part(input, [at], [(begin, begin + length, 1)])


def _value(what: str, x: Tensor, value: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{what}: expected a Tensor as value, got {type(value).__name__}")
    return cast(value, x.dtype)


def slice_scatter(x: Tensor, value: Tensor, axes: Any, starts: Any, ends: Any, strides: Any,
                  name: str | None = None) -> Tensor:
    """x with `value`, which broadcasts, in place of x[starts[i] : ends[i] : strides[i]] along axes[i].

    >>> from minipd.ops.creation import ones, zeros
    >>> slice_scatter(zeros([5]), ones([2]), [0], [1], [5], [2]).tolist()
    [0.0, 1.0, 0.0, 1.0, 0.0]
    """
    at = [an_axis("slice_scatter", a, x) for a in axes]
    if len({len(at), len(starts), len(ends), len(strides)}) > 1 or len(set(at)) != len(at):
        raise ValueError(f"slice_scatter: expected a start, an end and a stride for each of different axes, got "
                         f"{list(starts)}, {list(ends)} and {list(strides)} for {list(axes)}")
    parts = [normalized_part(slice(b, e, s), x.payload.shape[a]) for a, b, e, s in zip(
        at, starts, ends, strides, strict=True)]
    begin, end, stride = (tuple(p[i] for p in parts) for i in range(3))
    return SetValue(x, _value("slice_scatter", x, value), axes=tuple(at), starts=begin, ends=end, strides=stride)


def select_scatter(x: Tensor, values: Tensor, axis: int, index: int, name: str | None = None) -> Tensor:
    """x with `values` in place of its slice number `index` along `axis`.

    >>> from minipd.ops.creation import ones, zeros
    >>> select_scatter(zeros([2, 3]), ones([2]), 1, -1).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    at = an_axis("select_scatter", axis, x)
    n = x.payload.shape[at]
    if not is_symbolic(n) and not -n <= index < n:
        raise IndexError(f"select_scatter: expected an index in {-n} .. {n - 1}, of axis {at} of "
                         f"{describe(x.payload)}, got {index}")
    first = index + n if index < 0 else index
    values = Unsqueeze(_value("select_scatter", x, values), axis=(at,))
    return SetValue(x, values, axes=(at,), starts=(first,), ends=(first + 1,), strides=(1,))
