"""Rules of operators that work along some axes: sorting, running sums and extremes, moving elements, half a transform.

Along an axis an element of the result depends on elements that other ranks would have, so the axis is whole; all other
dimensions go where they like.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, letters, replace
from minipd.dist.spmd.table import spmd
from minipd.framework import dtype as dtypes

__all__: list[str] = []


def along(x: Any, axes: tuple[int, ...], results: int = 1, *, resized: bool = False, **how: Any) -> Notation:
    """x and `results` results of its dimensions, of which `axes` are whole.

    resized: their sizes are others in the results.  `how` goes to `Notation`.
    """
    before = behind = letters(len(x.shape))
    for axis in axes if resized else ():
        behind = replace(behind, axis, before[axis].upper())
    whole = "".join({w[axis] for axis in axes for w in (before, behind)}) if before else ""
    return Notation((before,), (behind,) * results, whole=whole, **how)


# --------------------------------------------------------------------------------------------- order
@spmd("argsort")
def argsort(x: Any, *, axis: int, descending: bool = False) -> Notation:
    return along(x, (axis,), 2)


@spmd("topk")
def topk(x: Any, *, k: int, axis: int, largest: bool = True) -> Notation:
    return along(x, (axis,), 2, resized=True)


@spmd("kthvalue")
def kthvalue(x: Any, *, k: int, axis: int) -> Notation:
    return along(x, (axis,), 2, resized=True)


@spmd("mode")
def mode(x: Any, *, axis: int) -> Notation:
    return along(x, (axis,), 2, resized=True)


# --------------------------------------------------------------------------------------------- running reductions
@spmd("cumsum")
def cumsum(x: Any, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Notation:
    return along(x, (axis,), linear=((0,),))


@spmd("cumprod")
def cumprod(x: Any, *, axis: int, exclusive: bool = False, reverse: bool = False) -> Notation:
    return along(x, (axis,))


@spmd("logcumsumexp")
def logcumsumexp(x: Any, *, axis: int, reverse: bool = False) -> Notation:
    return along(x, (axis,))


@spmd("cummax", "cummin")
def running_extreme(x: Any, *, axis: int, dtype: Any = dtypes.int64.np) -> Notation:
    return along(x, (axis,), 2)


# --------------------------------------------------------------------------------------------- moving elements
@spmd("flip")
def flip(x: Any, *, axis: tuple[int, ...]) -> Notation:
    return along(x, axis, linear=((0,),), carries="any")


@spmd("roll")
def roll(x: Any, *, shifts: tuple[int, ...], axis: tuple[int, ...]) -> Notation:
    return along(x, axis, linear=((0,),), carries="any")
