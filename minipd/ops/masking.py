"""Writing where a mask holds: whatever the mask's values, the result has one shape, so it works while tracing too."""

from __future__ import annotations

from typing import Any

from minipd.framework import dtype as dtypes
from minipd.framework.dim import same
from minipd.framework.meta import describe
from minipd.framework.tensor import Tensor
from minipd.framework.views import write
from minipd.framework.whole import whole
from minipd.ops import math
from minipd.ops.broadcast import Expand
from minipd.ops.by_number import Gather
from minipd.ops.cast import cast
from minipd.ops.reshape import reshape
from minipd.ops.scan import cumsum
from minipd.ops.shapes import broadcast_shapes

__all__ = ["masked_fill", "masked_scatter", "where_"]


def _check_mask(what: str, mask: Tensor) -> None:
    if mask.payload.dtype != dtypes.bool.np:
        raise TypeError(f"{what}: expected a bool mask, got {describe(mask.payload)}; write a comparison, mask != 0")


@whole
def masked_fill(x: Tensor, mask: Tensor, value: Any, name: str | None = None) -> Tensor:
    """x with `value`, a number or a 0-D tensor, where the mask holds.   x and mask broadcast

    >>> from minipd.ops.creation import to_tensor
    >>> masked_fill(to_tensor([1.0, 2.0]), to_tensor([True, False]), 0.5).tolist()
    [0.5, 2.0]
    """
    _check_mask("masked_fill", mask)
    value = cast(value, x.dtype) if isinstance(value, Tensor) else x.payload.dtype.type(value).item()
    return math.where(mask, value, x)


def masked_scatter(x: Tensor, mask: Tensor, value: Tensor, name: str | None = None) -> Tensor:
    """x with the elements of `value`, one after the other, where the mask holds.   mask broadcasts to x

    Raises: ValueError if value has too few elements and that is known, IndexError if it is found out.

    >>> from minipd.ops.creation import to_tensor
    >>> mask = to_tensor([True, False, True])
    >>> masked_scatter(to_tensor([1, 2, 3]), mask, to_tensor([7, 8, 9])).tolist()
    [7, 2, 8]
    """
    _check_mask("masked_scatter", mask)
    if value.payload.dtype != x.payload.dtype:
        raise TypeError(f"masked_scatter: expected values of dtype {x.dtype.name}, as {describe(x.payload)} has, got "
                        f"{describe(value.payload)}; cast one of them")
    shape = broadcast_shapes("masked_scatter", x.payload.shape, mask.payload.shape)
    mask, x = (t if t.payload.shape == shape else Expand(t, shape=shape) for t in (mask, x))
    if same(value.size, 0):
        if mask.values("masked_scatter of no values").any():
            raise ValueError("masked_scatter: expected as many values as the mask selects, got none")
        return x.clone()
    number = cumsum(reshape(mask, [-1]).astype("int64")) - 1        # of the value that a selected element takes
    taken = Gather(reshape(value, [-1]), number, axis=0)
    return math.where(mask, reshape(taken, shape), x)


def where_(condition: Tensor, x: Tensor, y: Any, name: str | None = None) -> Tensor:
    """x, in place, with y where the condition does not hold.  Returns x.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([1.0, 2.0])
    >>> where_(to_tensor([True, False]), x, 0.0) is x, x.tolist()
    (True, [1.0, 0.0])
    """
    def where(x: Tensor, condition: Tensor, y: Any) -> Tensor:
        return math.where(condition, x, y)
    return write(x, where, condition, y)
