"""Rules of what the parts of a whole answer together: any, all, prod, logsumexp; and of membership and counts.

Whether *any* element is true is whether any part has one, so the result is Partial(any); and so on.  An empty part
answers what changes nothing: false, true, 1, a count of 0.
"""

from __future__ import annotations

from typing import Any

from minipd.dist.spmd.notation import Notation, letters
from minipd.dist.spmd.reduction import over
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import same

__all__: list[str] = []


def _parts(x: Any, axis: tuple[int, ...], keepdim: bool, kind: str) -> Notation:
    word, out, gone = over(x, axis, keepdim)
    return Notation((word,), (out,), reduce=dict.fromkeys(gone, kind))


@spmd("any")
def any_of(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    return _parts(x, axis, keepdim, "any")


@spmd("all")
def all_of(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    return _parts(x, axis, keepdim, "all")


@spmd("prod")
def prod(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    return _parts(x, axis, keepdim, "prod")


@spmd("logsumexp")
def logsumexp(x: Any, *, axis: tuple[int, ...], keepdim: bool = False) -> Notation:
    """Over a split dimension: a maximum, a sum of exponentials, each one small all-reduce.  (Of nothing there is no
    maximum.)"""
    word, out, gone = over(x, axis, keepdim)
    empty = any(same(x.shape[i], 0) for i in axis)
    return Notation((word,), (out,), whole=gone if empty else "", decompose="" if empty else gone)


@spmd("isin")
def isin(x: Any, test_x: Any, *, assume_unique: bool = False, invert: bool = False) -> Notation:
    """x is among the elements if it is among those of any rank; it is not (`invert`) if it is not among all ranks'."""
    word, tested = letters(len(x.shape)), "klmnopqrs"[:len(test_x.shape)]
    return Notation((word, tested), (word,), reduce=dict.fromkeys(tested, "all" if invert else "any"))


@spmd("searchsorted")
def searchsorted(sorted_sequence: Any, values: Any, *, right: bool = False, out_int32: bool = False) -> Notation:
    """How many elements come before a value: the sum of how many of each part do, which is sorted as well."""
    word = letters(len(values.shape))
    lead = "" if len(sorted_sequence.shape) == 1 else word[:-1]
    return Notation((lead + "s", word), (word,), reduce={"s": "sum"})
