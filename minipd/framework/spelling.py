"""Attributes as they were written.

Public functions count axes from the front before they call a row, so that kernels, gradient rules and passes meet one
spelling only.  Paddle's text shows the other: the -1 that stands in the source, the empty list for "all axes".  A value
that was normalised remembers what it was; a trace writes that down beside the operation, and nothing else reads it.
Where nothing writes (eager mode), values are plain.
"""

from __future__ import annotations

from typing import Any

from minipd.framework.rank import current

__all__ = ["Spelled", "SpelledInt", "SpelledTuple", "as_given", "spells"]


class SpelledInt(int):
    """An int that was given as another."""

    given: Any


class SpelledTuple(tuple):
    """A tuple that was given as another, or as a number."""

    given: Any


Spelled = (SpelledInt, SpelledTuple)


def spells() -> bool:
    """Whether somebody wants to know how attributes were written."""
    return current().ground.spells


def as_given(value: Any, given: Any) -> Any:
    """`value`, which remembers that it was given as `given`, where that is not the same and somebody wants to know.

    >>> from minipd.framework.context import MetaOnly, using
    >>> with using(ground=MetaOnly()):
    ...     axis = as_given(2, -1)
    >>> axis, axis + 1, axis.given, type(as_given(2, -1))
    (2, 3, -1, <class 'int'>)
    """
    if given == value or not current().ground.spells:
        return value
    made: Any = SpelledTuple(value) if isinstance(value, tuple) else SpelledInt(value)
    made.given = given
    return made
