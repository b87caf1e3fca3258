"""Tensors repeated: whole (tile), or element by element.  Compositions of expand and reshape."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework.dim import is_symbolic, same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.whole import whole
from minipd.ops.broadcast import Expand
from minipd.ops.by_number import Gather, an_axis
from minipd.ops.creation import sizes
from minipd.ops.making import spread
from minipd.ops.reshape import Reshape, reshape

__all__ = ["repeat", "repeat_interleave", "tile"]


@spread(1)
@whole
def tile(x: Tensor, repeat_times: Any, name: str | None = None) -> Tensor:
    """x repeated along each dimension; both numbers of dimensions are brought to the same by leading ones.

    >>> from minipd.ops.creation import to_tensor
    >>> tile(to_tensor([1, 2]), [2, 2]).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    given = sizes(repeat_times)
    times = [t if is_symbolic(t) else t.__index__() for t in (given if isinstance(given, (list, tuple)) else [given])]
    if any(isinstance(t, int) and t < 0 for t in times):
        raise ValueError(f"tile: expected repeat_times of at least 0, got {times}")
    own = tuple(x.payload.shape)
    times = [1] * (len(own) - len(times)) + times
    own = (1,) * (len(times) - len(own)) + own
    if all(same(t, 1) for t in times):
        return Reshape(x, shape=own).clone()
    apart = Reshape(x, shape=tuple(d for n in own for d in (1, n)))
    wide = Expand(apart, shape=tuple(d for pair in zip(times, own, strict=True) for d in pair))
    return Reshape(wide, shape=tuple(t * n for t, n in zip(times, own, strict=True)))


@spread(1)
def repeat(input: Tensor, repeats: Any) -> Tensor:
    """input repeated along each dimension, `x.repeat(2, 3)` or `x.repeat([2, 3])`: the same as `tile`."""
    return tile(input, repeats)


@whole
def repeat_interleave(x: Tensor, repeats: Any, axis: int | None = None, name: str | None = None, *,
                      output_size: int | None = None) -> Tensor:
    """Each slice along `axis` repeated; without an axis, each element, in row-major order.

    repeats: one number, or an int tensor with a number for each slice (whose values decide the size: not while
    tracing).  output_size: what the repeats add up to, checked.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[1, 2], [3, 4]])
    >>> repeat_interleave(x, 2).tolist(), repeat_interleave(x, to_tensor([1, 2]), 0).tolist()
    ([1, 1, 2, 2, 3, 3, 4, 4], [[1, 2], [3, 4], [3, 4]])
    """
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    at = an_axis("repeat_interleave", axis, x)
    shape = tuple(x.payload.shape)
    if isinstance(repeats, Tensor) and repeats.size == 1:
        repeats = repeats.item()
    if isinstance(repeats, Tensor):
        if repeats.ndim != 1 or not same(repeats.payload.shape[0], shape[at]):
            raise ValueError(f"repeat_interleave: expected {shape[at]} repeats, one for each slice along axis {at} of "
                             f"{describe(x.payload)}, got {describe(repeats.payload)}")
        numbers = np.repeat(np.arange(shape[at]), repeats.values("repeat_interleave by a tensor"))
        out = Gather(x, Tensor(numbers), axis=at)
    elif repeats < 0:
        raise ValueError(f"repeat_interleave: expected repeats of at least 0, got {repeats}")
    else:
        before, n, after = shape[:at], shape[at], shape[at + 1:]
        wide = Expand(Reshape(x, shape=(*before, n, 1, *after)), shape=(*before, n, repeats, *after))
        out = Reshape(wide, shape=(*before, n * repeats, *after))
    if output_size is not None and not same(out.payload.shape[at], output_size):
        raise ValueError(f"repeat_interleave: expected {output_size} slices, got {out.payload.shape[at]}")
    return out
