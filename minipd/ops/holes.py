"""Why an operator rightly lacks a column: each reason once, with the rows that it holds for.

A test refuses a hole that is not written here, and a line here that explains no hole.
"""

from __future__ import annotations

from typing import NamedTuple

from minipd.framework.row import Trait

__all__: list[str] = []


class Hole(NamedTuple):
    """`rows`: names of operators, or traits that stand for every operator with them."""

    column: str
    reason: str
    rows: tuple[str | Trait, ...]


HOLES: list[Hole] = []


def explain(column: str, reason: str, *rows: str | Trait) -> None:
    """A later floor, which brings a column, writes down why `rows` rightly lack it."""
    HOLES.append(Hole(column, reason, rows))
