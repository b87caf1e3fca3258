"""Five kinds of `compute` entries, and the decorators that write them into the table of operators.

* `Elementwise(formula)`: formula(*elements, **attributes) -> Scalar, or a tuple of them for a row with several results.
* `Reduction(op, dims)`: folds dimensions of operand 0.
* `Broadcast(dims)`: operand 0 seen otherwise: repeated, with its dimensions in another order or shape.
* `Indexed(pieces)`: each element is one of an operand, at a place that depends on the position.
* `Fill(value, step)`: one number everywhere, or numbers that count up.

`dims(row's attributes, shape of operand 0, shape of the result)` says, for each dimension of the result, which
dimension of operand 0 it is; None for a new one.  For a Reduction, what no dimension of the result is gets folded.  For
a Broadcast, None instead of all that says that only the order of the elements, row by row, is that of the operand.

Low precision is storage: elements of bfloat16 and float16 come as float32, and stay so between the operators of a
group.  A result of the group is rounded once, when it is stored, and so is what `cast` is told to round.  The library
kernels round after every operator; so a group is the more exact one, and the two may differ by one rounding (2^-8
relative for bfloat16, 2^-11 for float16) per operator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from minipd.cinn.compute.scalar import Scalar
from minipd.cinn.ir.ast import STORAGE_ONLY
from minipd.framework.row import Row, add_column
from minipd.ir.interfaces import Interface, interface

__all__ = ["Broadcast", "Compute", "Elementwise", "Fill", "Indexed", "Piece", "Positions", "Reduction", "broadcast",
           "compute_dtype", "compute_of", "elementwise", "fill", "indexed", "reduction"]

Dims = tuple[int | None, ...]
FLOAT32 = np.dtype(np.float32)


class Elementwise(NamedTuple):
    """One element of each result from one element of each operand, which are broadcast, aligned to the right."""

    formula: Callable[..., Scalar | tuple[Scalar, ...]]


class Reduction(NamedTuple):
    """op: one of the loop IR's REDUCTIONS, or "argmax" or "argmin".  Of bools, "and" and "or" stand for their minimum
    and maximum."""

    op: str
    dims: Callable[[dict[str, Any], tuple, tuple], Dims]


class Broadcast(NamedTuple):
    dims: Callable[[dict[str, Any], tuple, tuple], Dims | None]


class Positions(Protocol):
    """Where an element of a result is: `at[i]`, an int64 Scalar, along dimension i.  `at.size(n)` is a size or a
    position, which may be symbolic, as such a Scalar."""

    def __getitem__(self, dim: int) -> Scalar: ...

    def size(self, n: Any) -> Scalar: ...


Place = Callable[[Positions], Scalar]


class Piece(NamedTuple):
    """Where a result's elements come from, for a part of it.

    operand: which operand; None for the number `value`.
    places: for each dimension of the operand, the dimension of the result that it is, or where to read along it.
    where: which elements of the result these are; None: all that no piece before it has.
    counts: the dimensions of the result that `places` and `where` ask for.
    """

    operand: int | None
    places: tuple[int | Place, ...] = ()
    where: Place | None = None
    counts: tuple[int, ...] = ()
    value: Any = 0


class Indexed(NamedTuple):
    """pieces(attributes, shapes of the operands, shapes of the results, number of the result)."""

    pieces: Callable[[dict[str, Any], list[tuple], list[tuple], int], list[Piece]]


class Fill(NamedTuple):
    """value: the name of the attribute that holds the number.  step: of the one to add along the only axis, if any."""

    value: str
    step: str | None = None


Compute = Elementwise | Reduction | Broadcast | Indexed | Fill


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


def indexed(row: str) -> Callable:
    """Decorator: the function says what pieces a result is made of."""
    def register(pieces: Callable) -> Callable:
        add_column(row, "compute", Indexed(pieces))
        return pieces
    return register


def fill(row: str, value: str = "value", step: str | None = None) -> None:
    """`row` gives its attribute `value` everywhere, or value + i * step at position i."""
    add_column(row, "compute", Fill(value, step))
