"""Calls of which some operands are known only when they run: what a run brings, or makes anew."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

__all__: list[str] = []


def late(function: Callable, operands: Sequence[Any], waiting: Sequence[tuple[int, int]], slots: list) -> Callable:
    """`function(*operands)` without arguments, where operand `i` stands in slot `s` for every (i, s) in `waiting`.

    >>> slots = [None, 20]
    >>> call = late(lambda a, b, c: (a, b, c), [1, None, 3], [(1, 1)], slots)
    >>> call()
    (1, 20, 3)

    Operands before the first that is waited for are held by a partial.  What is left is a tail of up to three in all
    but few programs, and for each of its shapes there is a function, for a list of operands that is put together in
    every call costs more than a small kernel.
    """
    if not waiting:
        return functools.partial(function, *operands)
    first = waiting[0][0]
    if first:
        function = functools.partial(function, *operands[:first])
    tail = list(operands[first:])
    places = [(i - first, slot) for i, slot in waiting]
    made = _SHAPES.get((len(tail), tuple(i for i, _ in places)))
    if made is not None:
        for i, slot in places:
            tail[i] = slot
        return made(function, slots, *tail)

    def call() -> Any:
        given = tail.copy()
        for i, slot in places:
            given[i] = slots[slot]
        return function(*given)
    return call


#: (length of the tail, what is waited for) -> the maker of the call; the makers are given slots there, and arrays
_SHAPES: dict[tuple[int, tuple[int, ...]], Callable[..., Callable]] = {
    (1, (0,)): lambda f, s, a: lambda: f(s[a]),
    (2, (0,)): lambda f, s, a, y: lambda: f(s[a], y),
    (2, (0, 1)): lambda f, s, a, b: lambda: f(s[a], s[b]),
    (3, (0,)): lambda f, s, a, y, z: lambda: f(s[a], y, z),
    (3, (0, 1)): lambda f, s, a, b, z: lambda: f(s[a], s[b], z),
    (3, (0, 2)): lambda f, s, a, y, c: lambda: f(s[a], y, s[c]),
    (3, (0, 1, 2)): lambda f, s, a, b, c: lambda: f(s[a], s[b], s[c]),
}
