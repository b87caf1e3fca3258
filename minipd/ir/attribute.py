"""What every attribute is: an immutable value with a kind, one object for all that are equal (see `context`).

The kinds are in `attributes`.  A dialect declares one with `Dialect.attribute`, which needs a class with a docstring
and `__slots__ = ()`; how its value is spelled and read is there already, unless it is of a Python type of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from minipd.ir.context import CONTEXT, Uniqued

__all__ = ["Attribute", "attribute_kind"]

#: the kind as written in the exact style -> the class; the parser looks here
KINDS = CONTEXT.attributes
#: Python type -> the class that `attribute` makes of it; the nearest base class counts
FROM_PYTHON = CONTEXT.attribute_of

A = TypeVar("A", bound="type[Attribute]")


def attribute_kind(kind: str, *python_types: type) -> Callable[[A], A]:
    """Register a class of attributes under its `kind`, and as what `attribute` makes of the given Python types."""

    def register(cls: A) -> A:
        cls.kind = kind
        KINDS[kind] = cls
        FROM_PYTHON.update(dict.fromkeys(python_types, cls))
        return cls
    return register


class Attribute(Uniqued):
    """An immutable value with a kind.  Equal ones, of one kind and value, are one object; NaN equals NaN here, and 0.0
    is not -0.0."""

    __slots__ = ("value",)
    value: Any
    kind: ClassVar[str]

    def __new__(cls, value: Any) -> Self:
        return cls.unique(value, value)

    def text(self, exact: bool) -> str:
        """The spelling in one of the two print styles."""
        return f"{self.kind}({self.literal()})" if exact else self.paddle()

    def literal(self) -> str:
        """What stands in the parentheses of the exact style; unless a kind spells it otherwise, the value as the
        attribute that it usually becomes."""
        from minipd.ir.attributes import attribute
        return self.usual(attribute(self.value)).text(exact=True)

    def paddle(self) -> str:
        """Paddle's spelling."""
        return str(self.value)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        """Read what `literal` wrote."""
        return cls(cls.usual(parser.attribute()).value)

    @classmethod
    def usual(cls, found: Attribute) -> Attribute:
        if isinstance(found, cls):
            raise NotImplementedError(f"attribute of kind {cls.kind}: expected methods `literal` and `parse`, since "
                                      "this is the usual kind of its values")
        return found

    def __repr__(self) -> str:
        return self.text(exact=True)
