"""Rows: each box below everything that it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["rows_of"]


def rows_of(count: int, wires: Iterable[tuple[int, int]], top: Sequence[int] = (),
            bottom: Sequence[int] = ()) -> list[int]:
    """The row of each of `count` boxes, from 0.  wires: (from, to).  Boxes in `top` have row 0 to themselves, those in
    `bottom` the last one.

    A box stands as high as its inputs allow; but one that reads no more than it feeds sinks to its first reader, so
    that parameters stand beside their use and not all in the first row.  Wires that close a circle are ignored.

    >>> rows_of(4, [(0, 1), (1, 2), (3, 2)])
    [0, 1, 2, 1]
    """
    below: list[list[int]] = [[] for _ in range(count)]
    above: list[list[int]] = [[] for _ in range(count)]
    for a, b in wires:
        if a != b:
            below[a].append(b)
            above[b].append(a)
    order = _topological(below, above)
    place = {box: i for i, box in enumerate(order)}
    below = [[b for b in readers if place[a] < place[b]] for a, readers in enumerate(below)]
    above = [[a for a in inputs if place[a] < place[b]] for b, inputs in enumerate(above)]
    least = 1 if top else 0
    row = [0] * count
    for box in order:
        row[box] = max([least, *(row[a] + 1 for a in above[box])]) if box not in top else 0
    for box in reversed(order):
        if box not in top and below[box] and len(above[box]) <= len(below[box]):
            row[box] = max(row[box], min(row[b] for b in below[box]) - 1)
    last = max((r for box, r in enumerate(row) if box not in bottom), default=0) + 1
    for box in bottom:
        row[box] = last
    return row


def _topological(below: list[list[int]], above: list[list[int]]) -> list[int]:
    """Boxes, each after its inputs; in a circle, the one with the lowest number first."""
    missing = [len(inputs) for inputs in above]
    ready = [box for box in reversed(range(len(below))) if not missing[box]]
    done: dict[int, None] = {}
    first = 0
    while len(done) < len(below):
        if not ready:
            while first in done:
                first += 1
            ready.append(first)
        box = ready.pop()
        if box in done:
            continue
        done[box] = None
        for reader in reversed(below[box]):
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    return list(done)
