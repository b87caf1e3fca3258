"""SPMD inference: from the placements that operands have to those they need and those the results get.

Pure: it depends on shapes, placements and attributes, never on data, and communicates nothing.  Whoever calls it
reshards the operands (eagerly, or by writing reshard operations into a program), so eager and compiled training
communicate the same.

Mesh axes are decided one at a time, outermost first.  For one axis:

1. Every operand that is split over the axis votes for the letter of the split dimension, with the bytes that could then
   stay where they are.  The first operand's letter wins, as in Paddle, unless another one has `MUCH` more bytes: so
   placements do not flip with small changes of sizes, and a bias does not move an activation.  Shape-only operands vote
   only if no other does.
2. The winner is split over the axis in every operand and result that has it; a Partial operand becomes a shard by one
   reduce-scatter.  A result without the letter is Partial.
   Operands that `spread` do not vote where they disagree over an axis.  The axis takes the dimension over which most
   bytes are split already, by whatever axis; if none is, the first that is free and divides: so what was split
   stays split, where an all-gather would be dearer than an all-to-all.
3. If nobody votes, a Partial may pass where the operator is linear.  Otherwise it is resolved first.

`infer_backward` reads the same letters the other way: the results vote, and the operands follow.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.dist.spmd.notation import Notation, shape_of
from minipd.dist.spmd.table import DECOMPOSE, RULES, Call, Decompose, Inferred
from minipd.framework.dim import prod, size_hint
from minipd.framework.rank import current

__all__: list[str] = []

MUCH = 8


def infer(row: Any, metas: Sequence[Any], placements: Sequence[Sequence[Placement] | None], attrs: dict,
          mesh: ProcessMesh, wanted: Sequence[Placement] | None = None) -> Inferred | Decompose:
    """The placements of one call, or `DECOMPOSE`.

    Args:
        row: the operator; where it has a rule, only its name is used.
        metas: one per operand, with its *global* shape; a Python number for a scalar operand.
        placements: one tuple per operand, one placement per mesh axis; None for a Python number.
        attrs: the call's attributes.
        wanted: for rows that create a tensor: the placements it is to have (Replicate if None).

    A row without a rule is its decomposition, if it has one; else it gets replicated operands, and results, and a
    warning says so, once for each name and rank.
    """
    given = _given(placements, mesh)
    rule = RULES.get(row.name)
    if rule is None:
        if "decompose" in row.columns:
            return DECOMPOSE
        _warn_without_rule(row.name)
        return replicated(row, metas, attrs, mesh)
    if rule.placed:
        return rule.function(Call(tuple(metas), given, attrs, mesh, None if wanted is None else tuple(wanted)))
    notation: Notation = rule.function(*metas, **attrs)
    return _Axes(notation, metas, given, mesh).decide()


def infer_backward(row: Any, metas: Sequence[Any], results: Sequence[Sequence[Placement]], attrs: dict,
                   mesh: ProcessMesh) -> Inferred:
    """The placements that operands should have so that the results come out as `results`, as far as they can.

    metas: the operands'.  results: one tuple of placements per result; Partial reads as Replicate.
    Where the rule does not say (it is not in notation, or there is none), the operands are replicated.

    >>> from minipd.dist.mesh import parse_mesh
    >>> from minipd.dist.placements import Shard
    >>> from minipd.framework.row import ROWS
    >>> import numpy as np
    >>> x, w = np.zeros((8, 16)), np.zeros((16, 32))
    >>> infer_backward(ROWS["matmul"], (x, w), [[Shard(0), Shard(1)]], {}, parse_mesh("dp=2,tp=2")).inputs
    ((Shard(dim=0), Replicate()), (Replicate(), Shard(dim=1)))
    """
    rule = RULES.get(row.name)
    if rule is None or rule.placed:
        return replicated(row, metas, attrs, mesh)
    n: Notation = rule.function(*metas, **attrs)
    turned = replace(n, ins=n.outs, outs=n.ins, reduce={}, whole=n.whole + n.decompose, decompose="", linear=(),
                     joins=(), shape_only=(), mute=(), lead=None)
    made = row.infer_meta(*metas, **attrs)
    found = _Axes(turned, made if row.multi else (made,), _given(results, mesh), mesh).decide()
    assert isinstance(found, Inferred)
    return Inferred(found.outputs, found.inputs, n.local)


def _given(placements: Sequence[Sequence[Placement] | None], mesh: ProcessMesh) -> tuple[tuple[Placement, ...], ...]:
    everywhere = (Replicate(),) * mesh.ndim
    return tuple(everywhere if p is None else tuple(p) for p in placements)


def replicated(row: Any, metas: Sequence[Any], attrs: Mapping[str, Any], mesh: ProcessMesh) -> Inferred:
    """Every rank has all operands and computes all of it."""
    everywhere = (Replicate(),) * mesh.ndim
    results = row.infer_meta(*metas, **attrs) if row.multi else (None,)
    return Inferred((everywhere,) * len(metas), (everywhere,) * len(results))


def _warn_without_rule(name: str) -> None:
    if name not in (warned := current().warned):
        warned.add(name)
        warnings.warn(f"{name}: no SPMD rule, so its operands are replicated and every rank computes all of it. To "
                      f'shard it, write a rule with @spmd("{name}") (minipd.dist.spmd).', stacklevel=3)


class _Axes:
    """The decision for each mesh axis in turn.  `ways` collects how often each letter has been split so far."""

    def __init__(self, notation: Notation, metas: Sequence[Any], placements: tuple[tuple[Placement, ...], ...],
                 mesh: ProcessMesh):
        self.notation, self.mesh, self.placements = notation, mesh, placements
        self.bytes, self.shapes = [_bytes(m) for m in metas], [shape_of(m) for m in metas]
        self.data = [i for i in range(len(metas)) if i not in notation.shape_only]
        self.ways: dict[str, tuple[int, ...]] = {}
        self.axes: dict[str, list[int]] = {}

    def decide(self) -> Inferred | Decompose:
        n = self.notation
        ins: list[list[Placement]] = [[] for _ in n.ins]
        outs: list[list[Placement]] = [[] for _ in n.outs]
        decomposes = False
        for axis, size in enumerate(self.mesh.sizes):
            at = [p[axis] for p in self.placements]
            letter = self._spread(at, size) if n.spread else self._elect(at, size)
            if letter:
                decomposes = decomposes or size > 1 and self._decomposes(letter, size)
                self.ways[letter] = self.ways.get(letter, ()) + (size,)
                self.axes.setdefault(letter, []).append(axis)
                for words, found in ((n.ins, ins), (n.outs, outs)):
                    for word, placement in zip(words, found, strict=True):
                        placement.append(Shard(word.index(letter)) if letter in word else Replicate())
                for word, placement in [*zip(n.outs, outs, strict=True), *((n.ins[i], ins[i]) for i in n.joins)]:
                    if letter not in word and letter in n.reduce:
                        placement[-1] = Partial(n.reduce[letter])
                continue
            block, kind = self._passing(at)
            for i, placement in enumerate(ins):
                unread = i in n.shape_only and isinstance(at[i], Partial)
                placement.append(at[i] if unread else kind if i in block else Replicate())
            for placement in outs:
                placement.append(kind)
        for letter, axes in self.axes.items():
            self._style(letter, axes, [*zip(n.ins, ins, strict=True), *zip(n.outs, outs, strict=True)])
        inputs = tuple(map(tuple, ins))
        if decomposes:
            return DECOMPOSE if self._agreed(inputs) else Decompose(inputs)
        return Inferred(inputs, tuple(map(tuple, outs)), n.local)

    def _agreed(self, inputs: tuple[tuple[Placement, ...], ...]) -> bool:
        """Whether no operand is split otherwise than its decomposition has it split."""
        return all(p == q or not isinstance(p, Shard) and not isinstance(q, Shard)
                   for given, needed in zip(self.placements, inputs, strict=True)
                   for p, q in zip(given, needed, strict=True))

    def _style(self, letter: str, axes: list[int], found: list[tuple[str, list[Placement]]]) -> None:
        """Orders and factors of a split letter stay where all operands that are split over it agree on them, over the
        same mesh axes; else it is plain.  It is as well where a rule looks at blocks of rows.  A lead is asked alone,
        and operands of which only the shape is read where no other is split."""
        n = self.notation
        styles: set[tuple] = set()
        for asked in ((n.lead,) if n.lead is not None else tuple(self.data), n.shape_only):
            for i in () if styles else asked:
                own = [axis for axis, p in enumerate(self.placements[i]) if self._letter(i, p) == letter]
                if own:
                    styles.add((tuple(own), tuple(p.with_(dim=0) for p in self.placements[i]
                                                  if isinstance(p, Shard) and self._letter(i, p) == letter)))
        if len(styles) != 1:
            return
        (own_axes, style), = styles
        parted = any(p.factor > 1 for p in style)
        if list(own_axes) != axes or n.splits is not None or parted and n.local is not None:
            return
        for word, placement in found:
            if letter in word:
                for axis, p in zip(axes, style, strict=True):
                    placement[axis] = p.with_(dim=word.index(letter))

    def _letter(self, operand: int, p: Placement) -> str:
        """The letter that an operand's placement splits; "-" for none."""
        return self.notation.ins[operand][p.dim] if isinstance(p, Shard) else "-"

    def _elect(self, at: list[Placement], size: int) -> str:
        """The letter to split over an axis on which the operands are placed as in `at`; "" for none."""
        n = self.notation
        speaking = [i for i in self.data if i not in n.mute]
        for voters in ((n.lead,),) if n.lead is not None else (speaking, n.shape_only):
            votes: dict[str, int] = {}
            for i in voters:
                letter = self._voted(i, at[i], size)
                if letter:
                    votes[letter] = votes.get(letter, 0) + self.bytes[i]
            if votes:
                return self._winner(votes)
            if self._passing(at)[0]:
                return ""
        return ""

    def _spread(self, at: list[Placement], size: int) -> str:
        """The letter to split over an axis where the operands `spread`; "" for none."""
        n = self.notation
        if not any(isinstance(p, Shard) for p in at):
            return ""
        if len(set(at)) == 1:
            return self._voted(0, at[0], size)
        agreed = {self._letter(0, ps[0]) for ps in zip(*self.placements, strict=True) if len(set(ps)) == 1}
        kept = dict.fromkeys((letter for letter in n.ins[0] if letter not in n.whole), 0.0)
        for i, placements in enumerate(self.placements):
            ways = math.prod(k for p, k in zip(placements, self.mesh.sizes, strict=True) if isinstance(p, Shard))
            for p in placements:
                if self._letter(i, p) in kept:
                    kept[self._letter(i, p)] += self.bytes[i] / ways
        free = [letter for letter in kept if letter not in agreed and letter not in self.ways
                and (kept[letter] or self._divides(letter, size))]
        return max(free, key=kept.__getitem__, default="")

    def _divides(self, letter: str, size: int) -> bool:
        n = self.shapes[0][self.notation.ins[0].index(letter)]
        return isinstance(n, int) and n > 0 and n % size == 0

    def _winner(self, votes: dict[str, int]) -> str:
        first, *others = votes
        for letter in others:
            if self._rank(letter) < self._rank(first) or (
                    self._rank(letter) == self._rank(first) and votes[letter] > MUCH * votes[first]):
                first = letter
        return first

    def _voted(self, operand: int, p: Placement, size: int) -> str:
        """The letter that an operand votes for over an axis of `size` ranks; "" if it abstains."""
        n, letter = self.notation, self._letter(operand, p)
        if letter in n.follow:
            return self._followed(operand, letter)
        if letter in "-1" or letter in n.whole:
            return ""
        fits = self._may_split(letter, self.ways.get(letter, ()) + (size,))
        return letter if fits or letter in n.decompose else ""

    def _decomposes(self, letter: str, size: int) -> bool:
        """Whether the decomposition is to handle a letter that is split: `reduce` may do so where it splits well."""
        n = self.notation
        return letter != "" and letter in n.decompose and not (
            letter in n.reduce and self._may_split(letter, self.ways.get(letter, ()) + (size,)))

    def _followed(self, operand: int, letter: str) -> str:
        """The first letter of the group that `letter` follows, if all those before it are split and it may be split by
        the axes of all of them together; else ""."""
        split = [self._letter(operand, p) for p in self.placements[operand]]
        group = [*self.notation.follow[letter], letter]
        ways = tuple(size for each, size in zip(split, self.mesh.sizes, strict=True) if each in group)
        return group[0] if set(group) <= set(split) and self._may_split(group[0], ways) else ""

    def _may_split(self, letter: str, ways: tuple[int, ...]) -> bool:
        return self.notation.splits is None or self.notation.splits(letter, ways)

    def _rank(self, letter: str) -> int:
        tiers = self.notation.prefer
        return next((i for i, tier in enumerate(tiers) if letter in tier), len(tiers))

    def _passing(self, at: list[Placement]) -> tuple[tuple[int, ...], Placement]:
        """Which Partial goes through unreduced over one axis: (block of operands, kind), or ((), Replicate()) if none.

        at: every operand's placement on the axis.  Only operands in `self.data` count; of the others just the shape is
        read.  The Partial ones must all be of one kind, which the notation lets pass, and be exactly a block of
        `linear`.  With `fill` two or more may be a part of a block, if the rest of it is replicated: one reduction
        then serves them all, where for a single one there is nothing to be saved by a later one.
        """
        n = self.notation
        kind_of = {i: p for i in self.data if isinstance(p := at[i], Partial)}
        partial, kinds = set(kind_of), set(kind_of.values())
        if len(kinds) == 1:
            kind = kinds.pop()
            for block in n.linear:
                whole = set(block) == partial
                rest = set(block) - partial
                filled = (n.fill and len(partial) > 1 and partial < set(block)
                          and all(isinstance(at[i], Replicate) for i in rest))
                if (whole or filled) and n.passes(kind.op):
                    return block, kind
        return (), Replicate()


def _bytes(meta: Any) -> int:
    dtype = getattr(meta, "dtype", None)
    return size_hint(prod(shape_of(meta))) * getattr(dtype, "itemsize", 8)
