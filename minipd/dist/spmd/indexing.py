"""Rules of look-ups: embedding, take_along_axis, and their gradients.

The table may be split over the dimension that is looked up (vocabulary parallelism): a rank answers for the rows it
has, zero for the others, and the results sum up.  `start`, the global index of its first row, is the local attribute
that tells it which rows those are.  The gradient with respect to the table is placed like the table.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.sharding import local_window
from minipd.dist.spmd.notation import Local, Notation, broadcast, letters, replace
from minipd.dist.spmd.table import spmd

__all__: list[str] = []


def _start_of(shape: tuple, dim: int, *, operand: int | None = None) -> Local:
    """Sets `start` to this rank's offset along `dim` of an operand (or of the result)."""
    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        placed = outputs[0] if operand is None else inputs[operand]
        return {**attrs, "start": local_window(shape, mesh, placed, rank)[1][dim]}
    return local


@spmd("embedding")
def embedding(x: Any, weight: Any, *, start: Any = 0) -> Notation:
    ids = letters(len(x.shape))
    return Notation((ids, "vw"), (ids + "w",), reduce={"v": "sum"}, local=_start_of(weight.shape, 0, operand=1))


@spmd("embedding_grad")
def embedding_grad(ids: Any, g: Any, like: Any, *, start: Any = 0) -> Notation:
    word = letters(len(ids.shape))
    return Notation((word, word + "w", "vw"), ("vw",), reduce=dict.fromkeys(word, "sum"), shape_only=(2,),
                    local=_start_of(like.shape, 0))


@spmd("take_along_axis")
def take_along_axis(x: Any, indices: Any, *, axis: int, start: Any = 0) -> Notation:
    """Apart from `axis`, where x has "v" and the indices have "i", the two broadcast."""
    table, at, out = _along(x.shape, indices.shape, axis)
    return Notation((table, at), (out,), reduce={"v": "sum"}, local=_start_of(x.shape, axis, operand=0))


@spmd("take_along_axis_grad")
def take_along_axis_grad(g: Any, indices: Any, like: Any, *, axis: int, start: Any = 0) -> Notation:
    """Index positions, and dimensions over which the table was broadcast, are summed."""
    table, at, out = _along(like.shape, indices.shape, axis)
    return Notation((out, at, table), (table,), reduce={letter: "sum" for letter in out if letter not in table},
                    shape_only=(2,), local=_start_of(like.shape, axis))


def _along(table: tuple, indices: tuple, axis: int) -> tuple[str, str, str]:
    (table_word, at), out = broadcast(_without(table, axis), _without(indices, axis))
    return replace(table_word, axis, "v"), replace(at, axis, "i"), replace(out, axis, "i")


def _without(shape: tuple, axis: int) -> tuple:
    return (*shape[:axis], 1, *shape[axis + 1:])
