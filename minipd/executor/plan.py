"""The memory plan: where in the arena each buffer lies.

Two buffers whose lifetimes overlap never share a byte; that is the whole contract, and `check` asks it.  Large buffers
are placed first, each into the smallest gap that is large enough among those it lives together with (best fit); small
ones fill what is left.  No order is best for every program, so two are tried; and where both leave more than a
hundredth unused, the buffers that stick out at the top are placed first in another try, and again, as long as there is
something to gain and the program is small enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["ALIGNMENT", "Interval", "Plan", "make_plan"]

ALIGNMENT = 64      # bytes: a cache line, and the widest vector register
TRIES = 24          # further ones
BUDGET = 8000       # placements that they may take together


class Interval(NamedTuple):
    """A buffer that lives from position `start` to position `end`, both included, and needs `size` bytes."""

    start: int
    end: int
    size: int


class Plan(NamedTuple):
    """The offset of every buffer, the bytes of the arena, and the bound: the most bytes that live at one position."""

    offsets: list[int]
    size: int
    bound: int


def make_plan(intervals: Sequence[Interval]) -> Plan:
    """Place the buffers.

    >>> make_plan([Interval(0, 1, 256), Interval(1, 2, 64), Interval(2, 3, 128)])
    Plan(offsets=[0, 256, 0], size=320, bound=320)
    """
    sizes = [-(-i.size // ALIGNMENT) * ALIGNMENT for i in intervals]
    by_size = sorted(range(len(sizes)), key=lambda i: (-sizes[i], intervals[i].start))
    by_area = sorted(range(len(sizes)), key=lambda i: -sizes[i] * (intervals[i].end - intervals[i].start + 1))
    bound = _bound(intervals, sizes)
    tried = [(*_place(intervals, sizes, order), order) for order in (by_size, by_area)]
    offsets, size, order = min(tried, key=lambda found: found[1])
    last, total = offsets, size
    for _ in range(min(TRIES, BUDGET // max(len(order), 1))):
        if size <= bound * 1.01:
            break
        highest = {i for i in order if last[i] + sizes[i] == total}
        order = [*(i for i in order if i in highest), *(i for i in order if i not in highest)]
        last, total = _place(intervals, sizes, order)
        if total < size:
            offsets, size = last, total
    return Plan(offsets, size, bound)


def _place(intervals: Sequence[Interval], sizes: list[int], order: list[int]) -> tuple[list[int], int]:
    """Place the buffers one after the other, in `order`; returns the offset of each (in the order of `intervals`), and
    the bytes of the arena.

    sizes: their sizes, rounded up to whole multiples of ALIGNMENT.  A buffer goes into the smallest gap that holds it
    among the buffers placed before it that it lives together with, or behind the last of these.
    """
    starts, ends, offsets, tops = (np.zeros(len(order), np.int64) for _ in range(4))     # of those that are placed
    found, total = [0] * len(order), 0
    for n, i in enumerate(order):
        start, end, _ = intervals[i]
        beside = np.flatnonzero((starts[:n] <= end) & (ends[:n] >= start) & (tops[:n] > offsets[:n]))
        offset = 0
        if sizes[i] and beside.size:
            beside = beside[np.argsort(offsets[beside], kind="stable")]
            free_from = np.concatenate(([0], np.maximum.accumulate(tops[beside])))      # each gap: from here ...
            room = offsets[beside] - free_from[:-1]                                     # ... this many bytes
            fits = np.flatnonzero(room >= sizes[i])
            offset = int(free_from[fits[np.argmin(room[fits])]] if fits.size else free_from[-1])
        starts[n], ends[n], offsets[n], tops[n] = start, end, offset, offset + sizes[i]
        found[i], total = offset, max(total, offset + sizes[i])
    return found, total


def _bound(intervals: Sequence[Interval], sizes: list[int]) -> int:
    """No plan can do with less: the most bytes that live at once."""
    change = np.zeros(max((i.end for i in intervals), default=0) + 2, np.int64)
    for (start, end, _), size in zip(intervals, sizes, strict=True):
        change[start] += size
        change[end + 1] -= size
    return int(np.cumsum(change).max())


def check(plan: Plan, intervals: Sequence[Interval]) -> None:
    """Raises: ValueError if two buffers that live at once overlap, or one lies outside of the arena."""
    for i, a in enumerate(intervals):
        if plan.offsets[i] % ALIGNMENT or plan.offsets[i] + a.size > plan.size:
            raise ValueError(f"memory plan: buffer {i} of {a.size} bytes at {plan.offsets[i]} does not lie in an arena "
                             f"of {plan.size}")
        for j, b in enumerate(intervals[:i]):
            at_once = a.start <= b.end and b.start <= a.end
            if at_once and plan.offsets[i] < plan.offsets[j] + b.size and plan.offsets[j] < plan.offsets[i] + a.size:
                raise ValueError(f"memory plan: buffers {j} and {i} live at once and overlap, at {plan.offsets[j]} and "
                                 f"{plan.offsets[i]}")
