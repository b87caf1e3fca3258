"""Adding at places some of which are named several times: what all gradients of reading by number come down to."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

#: with fewer runs than this left, each is summed at once
FEW = 32


def add_at(xp: Any, out: Any, places: tuple, values: Any) -> None:
    """out[places] += values, in order where a place is named several times.   places: int [n] each; values: [n, ...]

    Sorted by place, equal places stand in runs.  Round by round each run adds its next element, so that no place comes
    twice in a round; when few runs are left, which may be long, each is summed at once.  Much faster than `add.at`.
    """
    if not values.size:
        return
    order = xp.lexsort(xp.stack(places[::-1]))
    places, values = tuple(p[order] for p in places), values[order]
    new = xp.zeros(len(order), bool)
    new[0] = True
    for p in places:
        new[1:] |= p[1:] != p[:-1]
    start = xp.flatnonzero(new)
    end = xp.append(start[1:], len(order))
    while len(start) >= FEW:
        out[tuple(p[start] for p in places)] += values[start]
        start = start + 1
        left = start < end
        start, end = start[left], end[left]
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        out[tuple(p[first] for p in places)] += values[first:last].sum(axis=0, dtype=values.dtype)
