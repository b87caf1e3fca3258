"""Which accesses to one element must keep their order, and whether they do.

Two accesses *conflict* if one of them writes and they may touch the same element; two Reduces by one operation do not,
as sums may be added up in any order.  An order of execution is right if it keeps the order of all conflicting ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from minipd.cinn.schedule.affine import Meeting, meeting
from minipd.cinn.schedule.nests import Access, Nests

__all__ = ["common_loops", "conflicts", "met", "met_in", "precedes", "touch"]


def touch(a: Access, b: Access) -> bool:
    """Whether the order of two accesses to one buffer may matter."""
    return (a.op is not None or b.op is not None) and (a.op != b.op or a.op == "=")


def conflicts(nests: Nests, first: Iterable[str], second: Iterable[str],
              fixed: frozenset[str] = frozenset()) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses, one of a block in `first` and one of a block in `second`, whose order may matter within one
    iteration of the `fixed` loops."""
    wanted = set(second)
    for name in first:
        for a in nests.accesses(name):
            for b in nests.by_buffer[a.buffer]:
                if b.block in wanted and touch(a, b) and not met(nests, a, b, fixed).never:
                    yield a, b


def met(nests: Nests, a: Access, b: Access, fixed: frozenset[str] = frozenset()) -> Meeting:
    return meeting(a.index, b.index, fixed, nests.extents)


def common_loops(nests: Nests, a: str, b: str) -> tuple[str, ...]:
    """The loops around both blocks, from outside in."""
    found = []
    for x, y in zip(nests.loops_of(a), nests.loops_of(b), strict=False):
        if x != y:
            break
        found.append(x)
    return tuple(found)


def precedes(nests: Nests, a: Access, b: Access, fixed: frozenset[str] = frozenset()) -> bool:
    """Whether, within one iteration of the `fixed` loops, whoever does `a` to an element does so before anyone does
    `b` to it."""
    found = met(nests, a, b, fixed)
    if found.never:
        return True
    for loop in common_loops(nests, a.block, b.block):
        if loop in fixed or nests.extents[loop].constant == 1:
            continue
        distance = found.apart.get(loop)
        if distance is None:
            return False
        if distance:                            # iterations that may run at once are in no order
            kind = nests.loop(loop, "").kind
            return distance > 0 and kind in ("serial", "unroll")
    return nests.blocks[a.block].path < nests.blocks[b.block].path or (a.block == b.block and a.op is None)


def met_in(nests: Nests, loop: str, blocks: Iterable[str], reduces: bool) -> Iterator[tuple[Access, Access]]:
    """Pairs of accesses through which different iterations of a loop may meet, within one iteration of those around.

    reduces: whether it counts that two iterations reduce to the same element.
    """
    blocks = list(blocks)
    fixed = frozenset(x.var for x in nests.loops[loop].around)
    if nests.extents[loop].constant == 1:
        return
    wanted = set(blocks)
    for name in blocks:
        for a in nests.accesses(name):
            if a.op is None:
                continue
            for b in nests.by_buffer[a.buffer]:
                if b.block not in wanted or not (touch(a, b) or (reduces and b.op is not None)):
                    continue
                found = met(nests, a, b, fixed)
                if not found.never and found.apart.get(loop) != 0:
                    yield a, b
