"""Element-wise functions composed of others: clip, interpolation, choice among tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from minipd.framework import dtype as dtypes
from minipd.framework.meta import Meta, describe
from minipd.framework.row import op
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.framework.whole import whole
from minipd.ops.cast import cast
from minipd.ops.creation import clone
from minipd.ops.embedding import take_along_axis
from minipd.ops.families import Unary
from minipd.ops.joining import stack
from minipd.ops.logic import logical_and
from minipd.ops.making import into
from minipd.ops.math import add, maximum, minimum
from minipd.ops.promotion import as_tensor, promoted
from minipd.ops.reshape import squeeze
from minipd.ops.shapes import a_number, require_inexact, require_numbers, shapes_agree

__all__ = ["clamp", "clip", "increment", "lerp", "multiplex", "positive"]


@op("clip")
class Clip(Unary):
    """out = min(max(x, min), max); NaN stays.  Gradient 0 where x is outside."""

    mutable = ("min", "max")

    def infer_meta(x, *, min, max):
        require_numbers("clip", x)
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, min, max):
        return xp.clip(x, x.dtype.type(min), x.dtype.type(max))

    def kernel_out(xp, out, x, *, min, max):
        xp.clip(x, x.dtype.type(min), x.dtype.type(max), out=out)

    def vjp_x(g, x, min, max):
        return g * cast(logical_and(x >= min, x <= max), g.dtype)


def clip(x: Tensor, min: Any = None, max: Any = None, name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """x where it is in [min, max], else the nearer end.   min, max: numbers or tensors that broadcast; None: no end.

    A fraction as an end makes floats of ints.
    Raises: ValueError if min > max.

    >>> from minipd.ops.creation import to_tensor
    >>> clip(to_tensor([1.0, 2.0, 3.0]), 1.5, 2.5).tolist()
    [1.5, 2.0, 2.5]
    """
    x = as_tensor("clip", x)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        x = clone(x) if min is None and max is None else x if min is None else maximum(x, min)
        return into(out, x if max is None else minimum(x, max))
    require_numbers("clip", x.payload)
    min = None if min is None else a_number("clip", "min", min)
    max = None if max is None else a_number("clip", "max", max)
    ends = [end for end in (min, max) if end is not None]
    if any(isinstance(end, float) and end % 1.0 > 0.0 for end in ends):
        x = x if x.payload.dtype in dtypes.FLOATS else cast(x, dtypes.get_default_dtype())
    if min != min or max != max:
        raise ValueError(f"clip: expected ends that are numbers, got min={min}, max={max}")
    low, high = _ends(x.payload.dtype, min, max)
    if low > high:
        raise ValueError(f"clip: expected min <= max, got min={min}, max={max}")
    return into(out, Clip(x, min=low, max=high))


def _ends(dtype: np.dtype, low: Any, high: Any) -> tuple[Any, Any]:
    """The ends as numbers of the dtype, where there is none the dtype's own."""
    if dtype in dtypes.FLOATS:
        return -float("inf") if low is None else float(low), float("inf") if high is None else float(high)
    limits = dtypes.iinfo(dtype)

    def held(end: Any, default: int) -> int:
        return default if end is None or abs(end) == float("inf") else sorted((limits.min, int(end), limits.max))[1]
    return held(low, limits.min), held(high, limits.max)


clamp = clip


@whole
def lerp(x: Tensor, y: Tensor, weight: Any, name: str | None = None) -> Tensor:
    """x + weight * (y - x), broadcast: linear interpolation.   weight: a number or a tensor.

    >>> from minipd.ops.creation import to_tensor
    >>> lerp(to_tensor([1.0, 2.0]), to_tensor([3.0, 6.0]), 0.5).tolist()
    [2.0, 4.0]
    """
    x, y = promoted("lerp", as_tensor("lerp", x), as_tensor("lerp", y))
    require_inexact("lerp", x.payload)
    return x + weight * (y - x)


def positive(x: Tensor, name: str | None = None) -> Tensor:
    """x itself.

    Raises: TypeError for bools.

    >>> from minipd.ops.creation import to_tensor
    >>> positive(to_tensor([-1.0])).tolist()
    [-1.0]
    """
    require_numbers("positive", as_tensor("positive", x).payload)
    return x


def increment(x: Tensor, value: float = 1.0, name: str | None = None) -> Tensor:
    """x + value, in place: a counter of one element.  Returns x itself.

    Raises: ValueError if x has more than one element.

    >>> from minipd.ops.creation import to_tensor
    >>> increment(to_tensor([1.0])).tolist()
    [2.0]
    """
    if not isinstance(x, Tensor) or x.size != 1:
        raise ValueError(f"increment: expected a tensor of one element, got "
                         f"{describe(getattr(x, 'payload', x))}")
    value = a_number("increment", "value", value)
    step = value if x.payload.dtype in dtypes.FLOATS else int(value)
    return write(x, add, step)


def multiplex(inputs: Any, index: Tensor, name: str | None = None) -> Tensor:
    """Row i of the tensor `inputs[index[i]]`, for each i.   inputs: [rows, ...] each; index: int [rows, 1].

    >>> from minipd.ops.creation import to_tensor
    >>> multiplex([to_tensor([[1], [2]]), to_tensor([[3], [4]])], to_tensor([[1], [0]])).tolist()
    [[3], [2]]
    """
    if not isinstance(inputs, (list, tuple)) or len(inputs) < 2:
        raise ValueError(f"multiplex: expected a list of at least two tensors, got {inputs!r}")
    tensors = stack([as_tensor("multiplex", x) for x in inputs])
    rows = as_tensor("multiplex", index)
    shape, got = tensors.payload.shape, rows.payload.shape
    if len(shape) < 3 or not shapes_agree(got, (shape[1], 1)[:max(len(got), 1)], "multiplex: the index"):
        raise ValueError(f"multiplex: expected tensors of at least two dimensions and an index for each of their rows, "
                         f"got {describe(inputs[0].payload)} and {describe(rows.payload)}")
    return squeeze(take_along_axis(tensors, rows.reshape([1, -1] + [1] * (tensors.ndim - 2)), 0), 0)
