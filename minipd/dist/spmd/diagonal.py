"""Rules of diagonals: the two dimensions that one lies in are whole, all others go where they like."""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, letters, letters_onto, shape_of
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


def _words(x: Any, axis1: int, axis2: int) -> tuple[str, str, str]:
    """(letters of x, of its diagonal, the whole ones)"""
    word = letters(len(x.shape))
    others = "".join(letter for i, letter in enumerate(word) if i not in (axis1, axis2))
    return word, others + "z", word[axis1] + word[axis2] + "z"


@spmd("diagonal")
def diagonal(x: Any, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Notation:
    word, part, whole = _words(x, axis1, axis2)
    return Notation((word,), (part,), whole=whole, linear=((0,),), carries="any")


@spmd("fill_diagonal_tensor")
def fill_diagonal_tensor(x: Any, y: Any, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Notation:
    """y broadcasts to the diagonal."""
    word, part, whole = _words(x, dim1, dim2)
    sizes = tuple(n for i, n in enumerate(x.shape) if i not in (dim1, dim2))
    shape = shape_of(y)
    of_y = letters_onto(shape[:-1], sizes, part[:-1]) + "z" * bool(shape)
    return Notation((word, of_y), (word,), whole=whole, linear=((0, 1),), carries="any")
