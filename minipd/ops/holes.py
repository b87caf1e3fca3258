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


HOLES: list[Hole] = [
    Hole("vjp", "no tensor operand that a gradient could belong to", (
        "arange", "eye", "linspace", "full", "full_int_array", "full_like", "gaussian", "shape_only", "uniform")),
    Hole("vjp", "drawn by accepting and refusing: no formula leads from the parameter to the draw", (
        "poisson", "standard_gamma")),
    Hole("vjp", "the result is a truth value, an index or a count: the gradient is zero wherever it exists", (
        Trait.DISCRETE,)),
    Hole("vjp", "constant between jumps, and in Paddle without a gradient", ("floor_divide", "nextafter")),
    Hole("vjp", "the bytes of a number, read as another, have no derivative", ("view_dtype",)),
    Hole("vjp", "stopping the gradient is what it is for", ("share_data_",)),
    Hole("vjp", "a step of an optimizer ends what is differentiated", (
        "adadelta", "adagrad", "adamax", "adamw", "amsgrad", "asgd", "lamb", "momentum", "nadam", "radam", "rmsprop",
        "rprop", "sgd")),
    Hole("kernel_out", "a view shares its operand's memory: there is nothing to write", (Trait.VIEW,)),
    Hole("kernel_out", "a few integers, computed once when a program is loaded", ("full_int_array",)),
    Hole("kernel_out", "one element of memory, whatever its shape", ("shape_only",)),
    Hole("kernel_out", "allocates: the array module makes the result, and takes no buffer for it", (Trait.ALLOCATES,)),
]


def explain(column: str, reason: str, *rows: str | Trait) -> None:
    """A later floor, which brings a column, writes down why `rows` rightly lack it."""
    HOLES.append(Hole(column, reason, rows))
