"""The rule of reshape: which dimension may stay split when dimensions are merged and split.

Both shapes are cut into groups of dimensions whose products agree: [6, 12, 24] -> [72, 4, 6] has the groups (6, 12 ->
72) and (24 -> 4, 6).  Within a group the order of elements is kept, so a rank's block of rows stays one block of rows
if, and only if, the *first* dimension of the group is the one that is split, and both sides cut at the same elements:

    merge  (6, 12 -> 72)   over 2 ranks: 3 * 12 = 36 elements on both sides; over 4: 2 * 12 = 24, but 72 / 4 = 18: no
    split  (24 -> 4, 6)    over 4 ranks: 6 = 1 * 6 elements on both sides;   over 3: 8, but 2 * 6 = 12: no

Where it does not hold, a local reshape would give other rows than the global one, without any error; so the dimension
is gathered first.  Or, where other mesh axes split all dimensions before it in the group, the first one is split over
its axis too (as in Paddle): [6_dp, 12_tp] -> [72] takes one all-to-all to [6_dp_tp, 12] instead of an all-gather, and
the result stays split over both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from minipd.dist.sharding import chunk, local_window
from minipd.dist.spmd.notation import FREE, Notation, is_one
from minipd.dist.spmd.table import spmd
from minipd.framework.dim import DimExpr, prod, same

__all__: list[str] = []


class Group(NamedTuple):
    """Dimensions (their numbers) of the source and of the target with one product; never of size 1."""

    source: tuple[int, ...]
    target: tuple[int, ...]


def groups(source: tuple, target: tuple) -> list[Group]:
    """The smallest groups, in order.

    They end where the running products of both shapes agree, which is an equality of polynomials, so symbolic
    dimensions need no ordering.  With a dimension of size 0 all products are 0 and say nothing: only leading equal
    dimensions group.

    >>> groups((6, 12, 24), (72, 4, 6))
    [Group(source=(0, 1), target=(0,)), Group(source=(2,), target=(1, 2))]
    """
    left = [i for i, d in enumerate(source) if not is_one(d)]
    right = [i for i, d in enumerate(target) if not is_one(d)]
    found = []
    while left and right and same(source[left[0]], target[right[0]]):       # equal dimensions: also the sizes 0
        found.append(Group((left.pop(0),), (right.pop(0),)))
    if any(same(source[i], 0) for i in left):
        return [*found, Group(tuple(left), tuple(right))] if left or right else found
    i = j = 0
    while i < len(left) or j < len(right):
        after = {prod(source[d] for d in left[i:end]): end for end in range(len(left), i, -1)}
        end, stop = next(((after[p], stop) for stop in range(j + 1, len(right) + 1)
                          if (p := prod(target[d] for d in right[j:stop])) in after), (len(left), len(right)))
        found.append(Group(tuple(left[i:end]), tuple(right[j:stop])))
        i, j = end, stop
    return found


def same_cuts(source: Any, source_unit: Any, target: Any, target_unit: Any, ways: tuple[int, ...]) -> bool:
    """Whether `source` rows of `source_unit` elements are cut where `target` rows of `target_unit` elements are."""
    if not ways:
        return True
    if isinstance(source, DimExpr) or isinstance(target, DimExpr):
        return _whole_multiple(source, target, ways)
    for index in range(ways[0]):
        (m, at_m), (n, at_n) = chunk(source, ways[0], index), chunk(target, ways[0], index)
        if m * source_unit != n * target_unit or m and at_m * source_unit != at_n * target_unit:
            return False
        if not same_cuts(m, source_unit, n, target_unit, ways[1:]):
            return False
    return True


def _whole_multiple(source: Any, target: Any, ways: tuple[int, ...]) -> bool:
    """A symbolic dimension is split evenly by assumption.  So cuts agree if each side is known to divide, or is
    assumed to: an int side must really divide."""
    return all(isinstance(d, DimExpr) or d % prod(ways) == 0 for d in (source, target))


@spmd("reshape")
def reshape(x: Any, *, shape: tuple) -> Notation:
    ins, outs, whole = ["1"] * len(x.shape), ["1"] * len(shape), ""
    follow: dict[str, str] = {}
    sides: dict[str, tuple[Any, Any, Any, Any]] = {}
    spare = iter(FREE + FREE.upper())
    for group in groups(tuple(x.shape), tuple(shape)):
        if group.source and group.target:
            head = next(spare)
            ins[group.source[0]] = outs[group.target[0]] = head
            if group.source[1:] or group.target[1:]:
                sides[head] = (x.shape[group.source[0]], prod(x.shape[d] for d in group.source[1:]),
                               shape[group.target[0]], prod(shape[d] for d in group.target[1:]))
        for dims, word in ((group.source[1:], ins), (group.target[1:], outs)):
            for d in dims:
                word[d] = next(spare)
                whole += word[d]
        for dims, word in ((group.source, ins), (group.target, outs)):
            if group.source and group.target:
                follow |= {word[d]: "".join(word[e] for e in dims[:n]) for n, d in enumerate(dims[1:], 1)}

    def splits(letter: str, ways: tuple[int, ...]) -> bool:
        return letter not in sides or same_cuts(*sides[letter], ways)

    def local(attrs: dict, inputs: tuple, outputs: tuple, mesh: Any, rank: int) -> dict:
        return {**attrs, "shape": local_window(shape, mesh, outputs[0], rank)[0]}

    return Notation(("".join(ins),), ("".join(outs),), whole=whole, linear=((0,),), carries="any", follow=follow,
                    splits=splits, local=local)
