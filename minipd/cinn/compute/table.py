"""Four kinds of `compute` entries, and the decorators that write them into the table of operators.

* `Elementwise(formula)`: formula(*elements, **attributes) -> Scalar, or a tuple of them for a row with several results.
* `Reduction(op, dims)`: folds dimensions of operand 0.
* `Broadcast(dims)`: repeats operand 0, or adds and drops dimensions of size 1.
* `Fill(value, step)`: one number everywhere, or numbers that count up.

`dims(row's attributes, shape of operand 0, shape of the result)` says, for each dimension of the result, which
dimension of operand 0 it is; None for a new one.  For a Reduction, what no dimension of the result is gets folded.

Low precision is storage: elements of bfloat16 and float16 come as float32, and stay so between the operators of a
group.  A result of the group is rounded once, when it is stored, and so is what `cast` is told to round.  The library
kernels round after every operator; so a group is the more exact one, and the two may differ by one rounding (2^-8
relative for bfloat16, 2^-11 for float16) per operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.ir.ast import STORAGE_ONLY
from minipd.framework.row import Row, add_column
from minipd.ir.interfaces import Interface, interface

__all__ = ["Broadcast", "Compute", "Elementwise", "Fill", "Reduction", "broadcast", "compute_dtype", "compute_of",
           "elementwise", "fill", "reduction"]

Dims = tuple[int | None, ...]
FLOAT32 = np.dtype(np.float32)


class Elementwise(NamedTuple):
    """One element of each result from one element of each operand, which are broadcast, aligned to the right."""

    formula: Callable[..., Scalar | tuple[Scalar, ...]]


class Reduction(NamedTuple):
    """op: "add", "max" or "min"."""

    op: str
    dims: Callable[[dict[str, Any], tuple, tuple], Dims]


class Broadcast(NamedTuple):
    dims: Callable[[dict[str, Any], tuple, tuple], Dims]


class Fill(NamedTuple):
    """value: the name of the attribute that holds the number.  step: of the one to add along the only axis, if any."""

    value: str
    step: str | None = None


Compute = Elementwise | Reduction | Broadcast | Fill


@interface
class Loops(Interface):
    """The compiler can make loops of it: `entry` says how elements of the results come from those of the operands."""

    name, column = "Loops", "compute"
    entry: Compute

    @classmethod
    def declare(cls, row: Row, entry: Callable | Compute) -> None:
        add_column(row.name, cls.column, Elementwise(entry) if callable(entry) else entry)


def compute_of(row: Row) -> Compute | None:
    """The row's entry, None if it has none."""
    return row.columns.get("compute")


def compute_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype that elements of an array are computed in."""
    return FLOAT32 if dtype in STORAGE_ONLY else dtype


def elementwise(row: str) -> Callable:
    """Decorator: the function is the formula of `row`."""
    def register(formula: Callable) -> Callable:
        add_column(row, "compute", Elementwise(formula))
        return formula
    return register


def reduction(row: str, op: str) -> Callable:
    """Decorator: the function says which dimensions of the operand the result keeps."""
    def register(dims: Callable) -> Callable:
        add_column(row, "compute", Reduction(op, dims))
        return dims
    return register


def broadcast(row: str) -> Callable:
    """Decorator: the function says which dimension of the operand each one of the result is."""
    def register(dims: Callable) -> Callable:
        add_column(row, "compute", Broadcast(dims))
        return dims
    return register


def fill(row: str, value: str = "value", step: str | None = None) -> None:
    """`row` gives its attribute `value` everywhere, or value + i * step at position i."""
    add_column(row, "compute", Fill(value, step))
