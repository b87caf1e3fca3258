"""The order of boxes within their rows, so that few wires cross.

Sweep by sweep each row is sorted by the mean place of what its boxes are connected to in the row above, then below;
then neighbours that cross less the other way round are swapped.  The best order seen is kept.
"""

from __future__ import annotations

from bisect import bisect_right, insort

__all__ = ["crossings", "ordered"]

SWEEPS = 12


def ordered(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> list[list[int]]:
    """The rows, each in a better order.  up, down: the neighbours of each box in the row above and below.

    Two beginnings are tried: the order given, and the order in which a walk along the wires meets the boxes.

    >>> ordered([[0, 1], [2, 3]], [[], [], [1], [0]], [[3], [2], [], []])
    [[0, 1], [3, 2]]
    """
    met = _walked(rows, up, down)
    starts = [rows, [sorted(row, key=met.__getitem__) for row in rows]]
    return min((_swept(start, up, down) for start in starts), key=lambda found: crossings(found, down))


def _walked(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> dict[int, int]:
    """When a walk, depth first from the last boxes upwards, comes to each box."""
    met: dict[int, int] = {}
    pending = [box for row in rows for box in reversed(row) if not down[box]]
    while pending:
        box = pending.pop()
        if box not in met:
            met[box] = len(met)
            pending += reversed(up[box])
    return met | {box: len(met) for row in rows for box in row if box not in met}


def _swept(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> list[list[int]]:
    rows = [list(row) for row in rows]
    best, fewest = [list(row) for row in rows], crossings(rows, down)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        sequence = range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1)
        for i in sequence:
            _sort(rows[i], rows[i - 1 if downwards else i + 1], up if downwards else down, sweep % 4 > 1)
        _swap(rows, up, down)
        now = crossings(rows, down)
        if now < fewest:
            best, fewest = [list(row) for row in rows], now
    return best


def _sort(row: list[int], beside: list[int], neighbours: list[list[int]], turned: bool) -> None:
    """Sort one row by the mean place of its neighbours in the row beside; who has none stays where it is.

    turned: those with equal means change places, which is at times the way out of a bad order.
    """
    place = {box: i for i, box in enumerate(beside)}
    connected = [box for box in row if neighbours[box]]
    connected = sorted(connected[::-1] if turned else connected,
                       key=lambda box: sum(place[b] for b in neighbours[box]) / len(neighbours[box]))
    turn = iter(connected)
    row[:] = [next(turn) if neighbours[box] else box for box in row]


def _swap(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> None:
    place = {box: i for row in rows for i, box in enumerate(row)}
    for row in rows:
        for i in range(len(row) - 1):
            a, b = row[i], row[i + 1]
            gain = sum(_crossed(ends[a], ends[b], place) - _crossed(ends[b], ends[a], place) for ends in (up, down))
            if gain > 0:
                row[i], row[i + 1], place[a], place[b] = b, a, i + 1, i


def _crossed(left: list[int], right: list[int], place: dict[int, int]) -> int:
    """How many pairs of wires of two neighbours cross."""
    return sum(place[a] > place[b] for a in left for b in right)


def crossings(rows: list[list[int]], down: list[list[int]]) -> int:
    """How many pairs of wires cross.

    >>> crossings([[0, 1], [2, 3]], [[3], [2], [], []])
    1
    """
    total = 0
    for upper, lower in zip(rows, rows[1:], strict=False):
        place = {box: i for i, box in enumerate(lower)}
        seen: list[int] = []                    # ends of the wires so far, sorted: those to the right are crossed
        for box in upper:
            ends = sorted(place[b] for b in down[box])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
