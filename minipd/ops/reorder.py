"""The same elements in another order: dimensions moved, elements along them reversed or rolled around."""

from __future__ import annotations

from typing import Any

from minipd.framework.meta import Meta, describe
from minipd.framework.row import Trait, op
from minipd.framework.tensor import Tensor
from minipd.ops.making import spread
from minipd.ops.reshape import Transpose, reshape
from minipd.ops.shapes import normalize_axes, normalize_axis

__all__ = ["flip", "moveaxis", "permute", "reverse", "roll", "rot90", "swapaxes", "swapdims"]


class Moved:
    """Elements in another order, in the same shape."""

    traits = (Trait.EXACT, Trait.ALLOCATES)


@op("flip")
class Flip(Moved):
    """x with the elements along each of `axis` in reverse order."""

    def infer_meta(x, *, axis):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, axis):
        return xp.array(xp.flip(x, axis))

    def vjp_x(g, axis):
        return Flip(g, axis=axis)


@op("roll")
class Roll(Moved):
    """x with element i along axis[n] at i + shifts[n]; what leaves at one end comes in at the other."""

    def infer_meta(x, *, shifts, axis):
        return Meta(x.shape, x.dtype)

    def kernel(xp, x, *, shifts, axis):
        return xp.roll(x, shifts, axis)

    def vjp_x(g, shifts, axis):
        return Roll(g, shifts=tuple(-s for s in shifts), axis=axis)


# ------------------------------------------------------------------------------------------- public functions
def flip(x: Tensor, axis: Any, name: str | None = None) -> Tensor:
    """x with the elements along `axis`, one or several, in reverse order.

    >>> from minipd.ops.creation import arange
    >>> flip(arange(6).reshape([2, 3]), -1).tolist()
    [[2, 1, 0], [5, 4, 3]]
    """
    listed = axis if isinstance(axis, (list, tuple)) else [axis]
    axes = normalize_axes("flip", listed, x.ndim) if len(listed) else ()
    return Flip(x, axis=axes)


reverse = flip


def roll(x: Tensor, shifts: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """x with the elements moved on by `shifts` along `axis`, those at the end to the front; without an axis, in
    row-major order.

    >>> from minipd.ops.creation import to_tensor
    >>> x = to_tensor([[1, 2], [3, 4]])
    >>> roll(x, 1).tolist(), roll(x, 1, axis=0).tolist()
    ([[4, 1], [2, 3]], [[3, 4], [1, 2]])
    """
    shifts = shifts.tolist() if isinstance(shifts, Tensor) else shifts
    moved = tuple(shifts) if isinstance(shifts, (list, tuple)) else (shifts,)
    if axis is None:
        if len(moved) != 1:
            raise ValueError(f"roll: expected one shift where no axis is given, got {list(moved)}")
        return reshape(Roll(reshape(x, [-1]), shifts=moved, axis=(0,)), x.payload.shape)
    axes = tuple(normalize_axis("roll", a, x.ndim) for a in (axis if isinstance(axis, (list, tuple)) else (axis,)))
    if len(axes) != len(moved):
        raise ValueError(f"roll: expected as many shifts as axes, got {list(moved)} and {list(axes)}")
    return Roll(x, shifts=moved, axis=axes) if x.ndim else x


def rot90(x: Tensor, k: int = 1, axes: Any = (0, 1), name: str | None = None) -> Tensor:
    """x turned k times by 90 degrees, in the plane of two axes, from the first to the second.

    >>> from minipd.ops.creation import to_tensor
    >>> rot90(to_tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    if len(axes) != 2 or x.ndim < 2:
        raise ValueError(f"rot90: expected 2 axes of a tensor of at least 2 dimensions, got {list(axes)} of "
                         f"{describe(x.payload)}")
    a, b = (normalize_axis("rot90", i, x.ndim) for i in axes)
    if a == b:
        raise ValueError(f"rot90: expected two different axes, got {list(axes)}")
    turns = k % 4
    if turns in (1, 2):
        x = Flip(x, axis=(b,) if turns == 1 else tuple(sorted((a, b))))
    if turns in (1, 3):
        x = swapaxes(x, a, b)
    return Flip(x, axis=(b,)) if turns == 3 else x


def moveaxis(x: Tensor, source: Any, destination: Any, name: str | None = None) -> Tensor:
    """x with the dimensions `source` moved to the positions `destination`; the others keep their order.

    >>> from minipd.ops.creation import ones
    >>> moveaxis(ones([2, 3, 4]), 0, -1).shape
    paddle.Size([3, 4, 2])
    """
    listed = [list(v) if isinstance(v, (list, tuple)) else [v] for v in (source, destination)]
    start, end = ([normalize_axis("moveaxis", a, x.ndim) for a in v] for v in listed)
    if len(start) != len(end) or len(set(start)) != len(start) or len(set(end)) != len(end):
        raise ValueError(f"moveaxis: expected as many different source as destination axes, got {listed[0]} and "
                         f"{listed[1]}")
    perm = [i for i in range(x.ndim) if i not in start]
    for to, what in sorted(zip(end, start, strict=True)):
        perm.insert(to, what)
    return Transpose(x, perm=tuple(perm))


def swapaxes(x: Tensor, axis0: int, axis1: int, name: str | None = None) -> Tensor:
    """x with two dimensions exchanged.

    >>> from minipd.ops.creation import ones
    >>> swapaxes(ones([2, 3, 4]), 0, -1).shape
    paddle.Size([4, 3, 2])
    """
    a, b = (normalize_axis("swapaxes", i, x.ndim) for i in (axis0, axis1))
    if x.ndim == 0:
        return x
    perm = list(range(x.ndim))
    perm[a], perm[b] = b, a
    return Transpose(x, perm=tuple(perm))


swapdims = swapaxes


@spread(1)
def permute(input: Tensor, dims: Any) -> Tensor:
    """The dimensions in the order `dims`: a list, or several numbers.

    >>> from minipd.ops.creation import ones
    >>> permute(ones([2, 3, 4]), [2, 0, 1]).shape, permute(ones([2, 3, 4]), 2, 0, 1).shape
    (paddle.Size([4, 2, 3]), paddle.Size([4, 2, 3]))
    """
    return input.transpose(dims)
