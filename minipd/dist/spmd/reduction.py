"""Rules of reductions: sum, mean, max, min, numel, argmax, p_norm, reduce_as.

Split over a reduced dimension, every rank reduces its own part and the result is Partial of the same kind.  The mean of
means is the mean only where all ranks have as many: else (5 rows over 2 ranks) it decomposes into a sum and a division
by the global count (which the mean of nothing, NaN, does not have).
"""

from __future__ import annotations

import math
from typing import Any

from minipd.dist.sharding import chunk_sizes
from minipd.dist.spmd.notation import Notation, letters, letters_onto
from minipd.dist.spmd.table import spmd
from minipd.framework import dtype as dtypes
from minipd.framework.dim import DimExpr, same

__all__: list[str] = []


def over(x: Any, axis: tuple[int, ...], keepdim: bool) -> tuple[str, str, str]:
    """(letters of x, letters of the result, the letters reduced)."""
    word = letters(len(x.shape))
    out = "".join("1" if i in axis else letter for i, letter in enumerate(word) if keepdim or i not in axis)
    return word, out, "".join(word[i] for i in axis)


@spmd("sum")
def reduce_sum(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    word, out, gone = over(x, axis, keepdim)
    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "sum"))


@spmd("mean")
def reduce_mean(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    word, out, gone = over(x, axis, keepdim)
    if any(same(x.shape[i], 0) for i in axis):
        return Notation((word,), (out,), whole=gone)

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        n = x.shape[word.index(letter)]
        return letter not in gone or isinstance(n, DimExpr) or n % math.prod(ways) == 0

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, "avg"), decompose=gone, splits=splits)


def _extremum(x: Any, axis: tuple[int, ...], keepdim: bool, op: str) -> Notation:
    """A rank with an empty chunk has no maximum, so a dimension of 5 over 4 ranks (2, 2, 1, 0) is gathered instead."""
    word, out, gone = over(x, axis, keepdim)

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        return letter not in gone or _none_empty(x.shape[word.index(letter)], ways)

    return Notation((word,), (out,), reduce=dict.fromkeys(gone, op), splits=splits)


def _none_empty(n: Any, ways: tuple[int, ...]) -> bool:
    if not ways or isinstance(n, DimExpr):      # a symbolic dimension splits evenly
        return isinstance(n, DimExpr) or n > 0
    return all(_none_empty(m, ways[1:]) for m in chunk_sizes(n, ways[0]))


@spmd("max")
def reduce_max(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    return _extremum(x, axis, keepdim, "max")


@spmd("min")
def reduce_min(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    return _extremum(x, axis, keepdim, "min")


@spmd("numel")
def numel(x: Any) -> Notation:
    word = letters(len(x.shape))
    return Notation((word,), ("",), reduce=dict.fromkeys(word, "sum"))


@spmd("p_norm")
def p_norm(x: Any, *, porder: float, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    word, out, gone = over(x, axis, keepdim)
    return Notation((word,), (out,), decompose=gone)        # norms of parts do not add up to the norm: their powers do


@spmd("argmax", "argmin")
def argmax(x: Any, *, axis: int, keepdim: bool = False,
           dtype: Any = dtypes.int64.np) -> Notation:
    word, out, gone = over(x, (axis,), keepdim)
    return Notation((word,), (out,), whole=gone)


@spmd("reduce_as")
def reduce_as(x: Any, target: Any) -> Notation:
    """The sum of x over what broadcasting added to `target`'s shape."""
    word = letters(len(x.shape))
    kept = word[len(word) - len(target.shape):]
    out = letters_onto(tuple(target.shape), tuple(x.shape), kept)
    return Notation((word, out), (out,), reduce={letter: "sum" for letter in word if letter not in out},
                    linear=((0,),), shape_only=(1,))
