"""Rules of look-ups: embedding, take_along_axis, and their gradients.

The table may be split over the dimension that is looked up (vocabulary parallelism): a rank answers for the rows it
has, zero for the others, and the results sum up.  (Not where each row is asked for many elements of itself: the answers
would be as large as the row.)  The local attribute `window`, (rows of the whole, first row of the shard), tells it
which rows those are.  The gradient with respect to the table is placed like the table.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.sharding import local_window
from minipd.dist.spmd.notation import Local, Notation, is_one, letters, replace
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same

__all__: list[str] = []


def window_of(shape: tuple, dim: int, *, operand: int | None = None) -> Local:
    """Sets `window` to this rank's part of dimension `dim` of an operand (or of the result), if that is split."""
    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        placed = outputs[0] if operand is None else inputs[operand]
        if not any(p.is_shard(dim) and size > 1 for p, size in zip(placed, mesh.sizes, strict=True)):
            return attrs
        return {**attrs, "window": (shape[dim], local_window(shape, mesh, placed, rank)[1][dim])}
    return local


@spmd("embedding")
def embedding(x: Any, weight: Any, *, window: Any = None) -> Notation:
    ids = letters(len(x.shape))
    return Notation((ids, "vw"), (ids + "w",), reduce={"v": "sum"}, local=window_of(weight.shape, 0, operand=1))


@spmd("embedding_grad")
def embedding_grad(x: Any, g: Any, like: Any, *, window: Any = None) -> Notation:
    word = letters(len(x.shape))
    return Notation((word, word + "w", "vw"), ("vw",), reduce=dict.fromkeys(word, "sum"), shape_only=(2,),
                    local=window_of(like.shape, 0))


@spmd("take_along_axis")
def take_along_axis(x: Any, indices: Any, *, axis: int, window: Any = None) -> Notation:
    """Along `axis`, x has "v" and the indices, with the result, have "i"."""
    table, at, whole = _along(x.shape, indices.shape, axis)
    if not is_one(indices.shape[axis]):
        return Notation((table, at), (at,), whole=whole + "v")
    return Notation((table, at), (at,), reduce={"v": "sum"}, whole=whole, local=window_of(x.shape, axis, operand=0))


@spmd("take_along_axis_grad")
def take_along_axis_grad(g: Any, indices: Any, like: Any, *, axis: int, window: Any = None) -> Notation:
    table, at, whole = _along(like.shape, indices.shape, axis)
    return Notation((at, at, table), (table,), reduce={"i": "sum"}, whole=whole, shape_only=(2,),
                    local=window_of(like.shape, axis))


def _along(table: tuple, indices: tuple, axis: int) -> tuple[str, str, str]:
    """(letters of the table, of the indices, whole letters): dimensions of different sizes do not split alike."""
    table_word = at = replace(letters(len(table)), axis, "i")
    for d, (n, m) in enumerate(zip(table, indices, strict=True)):
        if d != axis and not same(n, m):
            table_word = replace(table_word, d, table_word[d].upper())
    different = "".join(a + b for a, b in zip(table_word, at, strict=True) if a != b)
    return replace(table_word, axis, "v"), at, different
