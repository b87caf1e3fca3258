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
3. If nobody votes, a Partial may pass where the operator is linear.  Otherwise it is resolved first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minipd.dist.mesh import ProcessMesh
from minipd.dist.placements import Partial, Placement, Replicate, Shard
from minipd.dist.spmd.notation import Notation, shape_of
from minipd.dist.spmd.table import DECOMPOSE, RULES, Call, Decompose, Inferred
from minipd.framework.dim import prod, size_hint

__all__: list[str] = []

MUCH = 4


def infer(row: Any, metas: Sequence[Any], placements: Sequence[Sequence[Placement] | None], attrs: dict,
          mesh: ProcessMesh, wanted: Sequence[Placement] | None = None) -> Inferred | Decompose:
    """The placements of one call, or `DECOMPOSE`.

    Args:
        row: the operator; only its name is used.
        metas: one per operand, with its *global* shape; a Python number for a scalar operand.
        placements: one tuple per operand, one placement per mesh axis; None for a Python number.
        attrs: the call's attributes.
        wanted: for rows that create a tensor: the placements it is to have (Replicate if None).

    Raises: NotImplementedError if the row has no rule.
    """
    rule = RULES.get(row.name)
    if rule is None:
        raise NotImplementedError(
            f"{row.name}: no SPMD rule, so its operands' placements {list(placements)} cannot be propagated. Write one "
            f'with @spmd("{row.name}") in the fitting file of minipd/dist/spmd/ (column "spmd" of the operator table), '
            "or make the operands Replicate on every mesh axis and use their local values.")
    replicated = (Replicate(),) * mesh.ndim
    given = tuple(replicated if p is None else tuple(p) for p in placements)
    if rule.placed:
        return rule.function(Call(tuple(metas), given, attrs, mesh, None if wanted is None else tuple(wanted)))
    notation: Notation = rule.function(*metas, **attrs)
    return _Axes(notation, metas, given, mesh).decide()


class _Axes:
    """The decision for each mesh axis in turn.  `ways` collects how often each letter has been split so far."""

    def __init__(self, notation: Notation, metas: Sequence[Any], placements: tuple[tuple[Placement, ...], ...],
                 mesh: ProcessMesh):
        self.notation, self.mesh, self.placements = notation, mesh, placements
        self.bytes = [_bytes(m) for m in metas]
        self.data = [i for i in range(len(metas)) if i not in notation.shape_only]
        self.ways: dict[str, tuple[int, ...]] = {}

    def decide(self) -> Inferred | Decompose:
        n = self.notation
        ins: list[list[Placement]] = [[] for _ in n.ins]
        outs: list[list[Placement]] = [[] for _ in n.outs]
        for axis, size in enumerate(self.mesh.sizes):
            at = [p[axis] for p in self.placements]
            if size > 1 and any(self._letter(i, at[i]) in n.decompose for i in self.data):
                return DECOMPOSE
            letter = self._elect(at, size)
            if letter:
                self.ways[letter] = self.ways.get(letter, ()) + (size,)
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
        return Inferred(tuple(map(tuple, ins)), tuple(map(tuple, outs)), n.local)

    def _letter(self, operand: int, p: Placement) -> str:
        """The letter that an operand's placement splits; "-" for none."""
        return self.notation.ins[operand][p.dim] if isinstance(p, Shard) else "-"

    def _elect(self, at: list[Placement], size: int) -> str:
        """The letter to split over an axis on which the operands are placed as in `at`; "" for none."""
        n = self.notation
        for voters in ((n.lead,),) if n.lead is not None else (self.data, n.shape_only):
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
        if letter in "-1" or letter in n.whole or letter in n.decompose:
            return ""
        return letter if self._may_split(letter, self.ways.get(letter, ()) + (size,)) else ""

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
        `linear`.  With `fill` they may be a part of a block, if the rest of it is replicated.
        """
        n = self.notation
        kind_of = {i: p for i in self.data if isinstance(p := at[i], Partial)}
        partial, kinds = set(kind_of), set(kind_of.values())
        if len(kinds) == 1:
            kind = kinds.pop()
            for block in n.linear:
                whole = set(block) == partial
                rest = set(block) - partial
                filled = n.fill and partial < set(block) and all(isinstance(at[i], Replicate) for i in rest)
                if (whole or filled) and n.passes(kind.op):
                    return block, kind
        return (), Replicate()


def _bytes(meta: Any) -> int:
    dtype = getattr(meta, "dtype", None)
    return size_hint(prod(shape_of(meta))) * getattr(dtype, "itemsize", 8)
