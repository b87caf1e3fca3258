"""Shapes as users see them."""

from __future__ import annotations

from typing import Any

__all__ = ["Size"]


class Size(tuple):
    """A shape: a tuple that also equals a list, as Paddle code compares it.

    >>> Size((2, 3)) == [2, 3], Size([2, 3]) + [4], Size([2, 3]).numel()
    (True, paddle.Size([2, 3, 4]), 6)
    """

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this shape has."""
        n = 1
        for d in self:
            n = n * d
        return n

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"paddle.Size([{', '.join(map(str, self))}])"
