"""Types and attributes of which only the spelling is known, because Paddle's text says no more."""

from __future__ import annotations

import json
from typing import Any

from minipd.ir.attributes import Attribute, attribute_kind
from minipd.ir.types import Type, type_keyword

__all__ = ["RawAttribute", "RawType"]


@attribute_kind("raw")
class RawAttribute(Attribute):
    """An attribute as Paddle prints it.

    >>> RawAttribute("Pointer(0x1)")
    raw("Pointer(0x1)")
    """

    __slots__ = ()

    def literal(self) -> str:
        return json.dumps(self.value)

    @classmethod
    def parse(cls, parser: Any) -> Attribute:
        return cls(parser.string())


@type_keyword("raw")
class RawType(Type):
    """A type as Paddle prints it."""

    __slots__ = ("spelling",)
    spelling: str

    def text(self, exact: bool) -> str:
        return f"raw({json.dumps(self.spelling)})" if exact else self.spelling

    @classmethod
    def parse(cls, parser: Any, word: str) -> RawType:
        parser.expect("(")
        found = cls.of(parser.string())
        parser.expect(")")
        return found

    @classmethod
    def of(cls, spelling: str) -> RawType:
        return cls.unique(spelling, spelling)
