"""The notation of an SPMD rule: einsum letters, and what may be done with them.

A rule names every dimension of every operand and result by a letter.  Dimensions with one letter are split alike:

    matmul      "mk", "kn" -> "mn"      k only on the left: split over k, every rank has a part of the sum
    x + bias    "ab", "b"  -> "ab"      aligned to the right, as broadcasting does
    x * column  "ab", "a1" -> "ab"      "1" is a dimension of size 1 that meets a larger one: it is never split

So sharding propagates by letters alone: `inference.py` picks, for each mesh axis, at most one letter to be split over
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Placement

__all__: list[str] = []

Placements = tuple[Placement, ...]
Local = Callable[[dict, tuple[Placements, ...], tuple[Placements, ...], ProcessMesh, int], dict]

#: letters for dimensions that are only aligned with each other; rules name special ones k, m, n, v, w, ...
FREE = "abcdefghij"


@dataclass(frozen=True)
class Notation:
    """What an operator is to the mesh.

    ins, outs: letters of the operands and results.
    reduce: letter -> how parts over it combine ("sum", "max", "min").  Split over such a letter, a result that lacks it
        is Partial.  A letter that a result lacks must be here, in `whole` or in `decompose`.
    whole: letters that are never split; an operand split over one is gathered.
    decompose: letters that the operator's decomposition handles when an operand is split over one; with an entry in
        `reduce`, only where `splits` says no.
    linear: blocks of operands in which the operator is linear, all others fixed: (0, 1) for x + y, (0,) for x / 2.  A
        Partial of exactly one block passes through to the results.  Only where that is *free*: each time a Partial
        passes an operator that makes it larger, or that two users share, the all-reduce to come gets dearer.
    carries: the kinds of Partial that pass: only "sum" and "avg" (linear operators), or "any" (those that move data).
    fill: within a block, replicated operands may become Partial (kept on one rank), so that the others, two or more,
        are resolved by one reduction.
    joins: operands that are one more term of what is reduced.  Where a reduced letter that they lack is split, they are
        Partial, which costs nothing: one rank keeps the value, and the others' parts change nothing.
    shape_only: operands of which only the shape is read.  They are never communicated, and choose only if nobody else
        does.
    mute: operands that never choose: they are small beside the others, and go along.
    lead: the operand that alone decides (the parameter of an optimizer step, which must not move).
    prefer: on a conflict, letters in an earlier string win; within one string, and after all of them, see
        `inference.py`.
    follow: whole letter -> the letters before it in a group that is merged.  Where other mesh axes split all of those,
        the group's first letter is split over this one's axis too.
    spread: operands of one word, joined along a whole letter.  One that has to move may as well move to any dimension:
        see `inference.py`.
    splits: (letter, ways) -> whether a letter may be split `ways` = (outer, inner, ...) ways.  None: always.
    local: rewrites the attributes for one rank: (attrs, inputs, outputs, mesh, rank) -> attrs.  None: they stay.
    """

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    reduce: Mapping[str, str] = field(default_factory=dict)
    whole: str = ""
    decompose: str = ""
    linear: tuple[tuple[int, ...], ...] = ()
    carries: str = "sum"
    fill: bool = False
    joins: tuple[int, ...] = ()
    shape_only: tuple[int, ...] = ()
    mute: tuple[int, ...] = ()
    lead: int | None = None
    prefer: tuple[str, ...] = ()
    follow: Mapping[str, str] = field(default_factory=dict)
    spread: bool = False
    splits: Callable[[str, tuple[int, ...]], bool] | None = None
    local: Local | None = None

    def passes(self, op: str) -> bool:
        """Whether a Partial of this kind may go through a linear block."""
        return self.carries == "any" or op in ("sum", "avg")


def shape_of(x: Any) -> tuple:
    """The shape of an operand; a Python number is 0-D."""
    return getattr(x, "shape", ())


def is_one(d: Any) -> bool:
    """Whether a dimension is known to be 1 (a symbol is not)."""
    return isinstance(d, int) and d == 1


def letters(ndim: int) -> str:
    return FREE[:ndim]


def broadcast(*shapes: tuple) -> tuple[tuple[str, ...], str]:
    """Letters of operands that broadcast against each other, and of their result: aligned to the right.

    >>> broadcast((4, 6), (6,), (4, 1), ())
    (('ab', 'b', 'a1', ''), 'ab')
    """
    ndim = max(map(len, shapes), default=0)
    out = letters(ndim)
    large = [any(len(s) >= ndim - i and not is_one(s[i - ndim]) for s in shapes) for i in range(ndim)]

    def word(shape: tuple) -> str:
        return "".join("1" if is_one(d) and large[i] else out[i] for i, d in enumerate(shape, ndim - len(shape)))

    return tuple(map(word, shapes)), out


def letters_onto(shape: tuple, sizes: tuple, word: str) -> str:
    """Letters of an operand that broadcasts to dimensions of these sizes, named by `word`.

    >>> letters_onto((1, 6), (3, 4, 6), "abc"), letters_onto((1, 3, 4), (3, 4), "ab")
    ('1c', '1ab')
    """
    lead = "1" * (len(shape) - len(word))               # more dimensions than there are: of size 1
    back = zip(reversed(shape), reversed(sizes), reversed(word), strict=False)
    return lead + "".join("1" if is_one(d) and not is_one(n) else letter for d, n, letter in back)[::-1]


def pointwise(*operands: Any, **how: Any) -> Notation:
    """An operator that works on broadcast elements; `how` goes to `Notation`."""
    ins, out = broadcast(*map(shape_of, operands))
    return Notation(ins, (out,), **how)


def replace(word: str, at: int, letter: str) -> str:
    """`word` with the letter of one dimension replaced."""
    return word[:at] + letter + word[at + 1:]
