"""Maxima and minima of no elements: refused, as the library kernels do, when a kernel meets such arrays.

How many elements an axis of unknown size has shows only there.  (One that is known to have none is never lowered.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minipd.cinn.ir.ast import Binary, Const, Dim, Expr, Function, Reduce, viewed_shape
from minipd.cinn.ir.operators import BINARY
from minipd.cinn.ir.walk import blocks
from minipd.framework.meta import describe

__all__ = ["Folded", "folded_by", "refuse_no_elements"]

#: operators that give one of the elements, or where it is
EXTREMES = ("max", "min", "argmax", "argmin")


class Folded(NamedTuple):
    """An operator's name, and the size of an axis that it takes the largest or smallest element along."""

    operator: str
    extent: Expr


def folded_by(function: Function) -> tuple[Folded, ...]:
    """The axes of unknown size that the maxima and minima of a function in block form run along."""
    found = [Folded(operator, v.extent) for block in blocks(function.body) if isinstance(block.body, Reduce)
             for operator in [block.name.split("_")[0]] if operator in EXTREMES
             for v in block.iter_vars if v.kind == "R" and not isinstance(v.extent, Const)]
    return tuple(dict.fromkeys(found))


def refuse_no_elements(function: Function, folded: Sequence[Folded], arrays: Sequence[np.ndarray]) -> None:
    """Raises: ValueError if one of the axes is empty."""
    if not folded:
        return
    shapes = {p.name: viewed_shape(p, a.shape) for p, a in zip(function.params, arrays, strict=True)}
    for operator, extent in folded:
        if not _value(extent, shapes):
            array, axis = next(((a, a.shape.index(0)) for a in arrays if 0 in a.shape), (None, None))
            where = "an axis" if array is None else f"axis {axis} of {describe(array)}"
            raise ValueError(f"{operator}: {where} is empty: nothing is the largest of no elements")


def _value(size: Expr, shapes: dict[str, tuple[int, ...]]) -> int:
    match size:
        case Const(value=value):
            return int(value)
        case Dim(param=param, axis=axis):
            return shapes[param][axis]
        case Binary(op=op, x=x, y=y):
            return int(BINARY[op].function(_value(x, shapes), _value(y, shapes)))
    raise AssertionError(size)
