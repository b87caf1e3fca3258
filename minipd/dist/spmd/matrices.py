"""Rules of the decompositions and equations of matrices: those of a batch go where they like, each is whole.

Columns on the right of an equation are independent, and a solution is linear in them: so a Partial passes, and they may
be split.
"""

from __future__ import annotations

import inspect
from typing import Any

from minipd.dist.spmd.notation import Notation, broadcast, letters, shape_of
from minipd.dist.spmd.table import spmd
from minipd.framework.row import ROWS

__all__: list[str] = []

#: name -> what follows the dimensions of the batch in each result: all of it whole
RESULTS = {
    "cholesky": ("mm",), "inverse": ("mm",), "matrix_exp": ("mm",), "determinant": ("",), "slogdet": ("", ""),
    "eig": ("m", "mm"), "eigh": ("m", "mm"), "lu": ("mn", "k", ""), "qr": ("mk", "kn"), "svd": ("mk", "k", "kn"),
}


def _of_matrices(name: str, results: tuple[str, ...]) -> None:
    def rule(x: Any, **attrs: Any) -> Notation:
        batch = letters(len(x.shape) - 2)
        return Notation((batch + "mn",), tuple(batch + r for r in results), whole="mnk")
    rule.__signature__ = inspect.signature(ROWS[name].infer_meta)  # type: ignore[attr-defined]
    spmd(name)(rule)


for _name, _results in RESULTS.items():
    _of_matrices(_name, _results)


@spmd("pinv")
def pinv(x: Any, rcond: Any, *, hermitian: bool = False) -> Notation:
    """rcond: a number for each matrix, or for all."""
    (batch, each), _ = broadcast(tuple(x.shape[:-2]), shape_of(rcond))
    return Notation((batch + "mn", each), (batch + "nm",), whole="mn")


@spmd("pivots_to_permutation")
def pivots_to_permutation(pivots: Any, like: Any) -> Notation:
    """Only the number of rows is read of `like`."""
    batch = letters(len(pivots.shape) - 1)
    other = letters(len(like.shape) - 2).upper()
    return Notation((batch + "k", other + "mn"), (batch + "m",), whole="kmn" + other, shape_only=(1,))


def _equations(x: Any, y: Any) -> Notation:
    (batch_x, batch_y), batch = broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    return Notation((batch_x + "mm", batch_y + "mk"), (batch + "mk",), whole="m", linear=((1,),))


@spmd("solve")
def solve(x: Any, y: Any) -> Notation:
    return _equations(x, y)


@spmd("triangular_solve")
def triangular_solve(x: Any, y: Any, *, upper: bool = True, transpose: bool = False,
                     unitriangular: bool = False) -> Notation:
    return _equations(x, y)
