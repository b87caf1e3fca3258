"""Rules of reading and writing slices by number: gather, gather_nd, and what is added, written or reduced at numbers.

Reading, the dimensions that are numbered are whole, as in Paddle: any rank may ask for any slice.  (embedding and
take_along_axis look up a table that is split.)

Writing, x stays where it is, also if a numbered dimension is split: each rank has all numbers and writes those that
fall into its part, which the local attribute `window` tells it.  Where the *numbers* are split instead, each rank has
some terms of the sum, and the result is Partial; x is one more term, which one rank keeps.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.sharding import local_window
from minipd.dist.spmd.indexing import window_of
from minipd.dist.spmd.notation import Local, Notation, letters, letters_onto, replace, shape_of
from minipd.dist.spmd.table import spmd

__all__: list[str] = []

NUMBERS = "klmnopqrs"       # letters of the dimensions of an index


def _slices(x: Any, index: Any, axis: int) -> tuple[str, str, str, str]:
    """(letters of x, of the index, of the slices, of the axis)"""
    word, numbers = letters(len(x.shape)), NUMBERS[:len(index.shape)]
    return word, numbers, word[:axis] + numbers + word[axis + 1:], word[axis]


@spmd("gather")
def gather(x: Any, index: Any, *, axis: int = 0) -> Notation:
    word, numbers, slices, whole = _slices(x, index, axis)
    return Notation((word, numbers), (slices,), whole=whole)


@spmd("index_add")
def index_add(x: Any, index: Any, value: Any, *, axis: int = 0, window: Any = None) -> Notation:
    word, numbers, slices, _ = _slices(x, index, axis)
    return Notation((word, numbers, slices), (word,), reduce=dict.fromkeys(numbers, "sum"), joins=(0,),
                    linear=((0, 2),), fill=True, local=window_of(x.shape, axis, operand=0))


def _tuples(x: Any, index: Any) -> tuple[str, str, str, int]:
    """(letters of x, of the index, of the slices, how many dimensions are numbered); "z" are the numbers of a tuple."""
    word, numbers, count = letters(len(x.shape)), NUMBERS[:len(index.shape) - 1], index.shape[-1]
    return word, numbers + "z", numbers + word[count:], count


@spmd("gather_nd")
def gather_nd(x: Any, index: Any) -> Notation:
    word, numbers, slices, count = _tuples(x, index)
    return Notation((word, numbers), (slices,), whole=word[:count] + "z")


@spmd("scatter_nd_add")
def scatter_nd_add(x: Any, index: Any, updates: Any, *, window: Any = None) -> Notation:
    word, numbers, slices, count = _tuples(x, index)
    return Notation((word, numbers, slices), (word,), reduce=dict.fromkeys(numbers[:-1], "sum"), whole="z", joins=(0,),
                    linear=((0, 2),), fill=True, local=_windows(x, count))


@spmd("scatter_nd_reduce")
def scatter_nd_reduce(x: Any, index: Any, updates: Any, *, reduce: str, window: Any = None) -> Notation:
    word, numbers, slices, count = _tuples(x, index)
    kind = {"mul": "prod", "amin": "min", "amax": "max"}[reduce]
    return Notation((word, numbers, slices), (word,), reduce=dict.fromkeys(numbers[:-1], kind), whole="z", joins=(0,),
                    local=_windows(x, count))


@spmd("index_put")
def index_put(x: Any, index: Any, value: Any, *, window: Any = None) -> Notation:
    """Of two writes to one place the last one stays, so the numbers are whole.  `value` broadcasts to the slices."""
    word, numbers, slices, count = _tuples(x, index)
    sizes = (*index.shape[:-1], *x.shape[count:])
    written = letters_onto(shape_of(value), sizes, slices)
    return Notation((word, numbers, written), (word,), whole=numbers, linear=((0, 2),), carries="any",
                    local=_windows(x, count))


@spmd("put_along_axis")
def put_along_axis(arr: Any, indices: Any, values: Any, *, axis: int, reduce: str = "assign") -> Notation:
    """As in Paddle, the axis is whole on both sides, and all else is split together."""
    word = letters(len(arr.shape))
    at = replace(word, axis, "z")
    return Notation((word, at, at), (word,), whole=word[axis] + "z", linear=((0, 2),),
                    carries="sum" if reduce == "add" else "any", fill=reduce == "add")


def _windows(x: Any, count: int) -> Local:
    """Sets `window`, (size of the whole, first of this rank) of each numbered dimension, if one of them is split."""
    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        split = any(p.is_shard() and p.dim < count and size > 1
                    for p, size in zip(inputs[0], mesh.sizes, strict=True))
        if not split:
            return attrs
        first = local_window(x.shape, mesh, inputs[0], rank)[1]
        return {**attrs, "window": tuple(zip(x.shape[:count], first[:count], strict=True))}
    return local
