"""The signatures of Paddle's operators.

`operators.txt`, which `tools/paddle_schema.py` makes by asking Paddle, has one line per operator:

    sum: x, axis:ints=[]; dtype:dtype=Undefined, keepdim:bool=false -> out

Operands come first: `x`, or `x?` where it may be absent, or `*x` where it is a vector; one with a kind is an attribute
that is an operand.  Attributes have a kind and, mostly, a default; then come the results.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Any, NamedTuple

from minipd.framework.dim import DimExpr
from minipd.ir.attributes import (
    ArrayAttribute,
    Attribute,
    BoolAttribute,
    ComplexAttribute,
    DataTypeAttribute,
    DimAttribute,
    DoubleAttribute,
    FloatAttribute,
    Int32Attribute,
    Int64Attribute,
    IntArrayAttribute,
    PlaceAttribute,
    StrAttribute,
)

__all__ = ["REQUIRED", "Signature", "names", "of_kind", "signature"]

#: the default of what has none
REQUIRED: Any = object()

FIELD = re.compile(r"(\*?)(\w+)(\??)(?::([\w<>]+))?(?:=(.*))?$")


class Operand(NamedTuple):
    """One operand: `kind` is that of the attribute for which it stands, "" for a tensor."""

    name: str
    vector: bool
    optional: bool
    kind: str
    default: Any


class Signature(NamedTuple):
    """What an operator of Paddle takes and gives.  attrs: name -> (kind, default or REQUIRED)."""

    name: str
    operands: tuple[Operand, ...]
    attrs: dict[str, tuple[str, Any]]
    results: tuple[str, ...]

    @property
    def tensors(self) -> tuple[Operand, ...]:
        return tuple(o for o in self.operands if not o.kind)

    @property
    def mutable(self) -> dict[str, Operand]:
        """The operands that stand for attributes."""
        return {o.name: o for o in self.operands if o.kind}


@functools.cache
def _lines() -> dict[str, str]:
    text = resources.files("minipd.ir.paddle").joinpath("operators.txt").read_text()
    pairs = (line.split(": ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: rest for name, rest in pairs}


def names() -> list[str]:
    """All operators of Paddle's, without their dialect."""
    return list(_lines())


@functools.cache
def signature(name: str) -> Signature | None:
    """The signature of `pd_op.<name>`; None for an operator that Paddle does not have.

    >>> signature("sum").attrs["keepdim"], list(signature("sum").mutable)
    (('bool', false), ['axis'])
    """
    line = _lines().get(name)
    if line is None:
        return None
    operands, rest = line.split(";", 1)
    attrs, results = rest.split("->", 1)
    return Signature(name, tuple(map(_operand, _fields(operands))),
                     {o.name: (o.kind, o.default) for o in map(_operand, _fields(attrs))},
                     tuple(r.strip().lstrip("*") for r in results.split(",") if r.strip()))


def _fields(text: str) -> list[str]:
    """The parts between commas that are not inside of brackets."""
    return [f.strip() for f in re.split(r",(?![^\[]*\])", text) if f.strip()]


def _operand(field: str) -> Operand:
    match = FIELD.match(field)
    assert match is not None, f"operators.txt: {field!r}"
    star, name, mark, kind, default = match.groups()
    return Operand(name, bool(star), bool(mark), kind or "",
                   REQUIRED if default is None else of_text(kind, default))


def of_text(kind: str, text: str) -> Attribute:
    """The attribute that stands as `text` in a line."""
    if kind.startswith("array<") or kind == "ints":
        element = "i64" if kind == "ints" else kind[6:-1]
        items = [of_text(element, t.strip()) for t in text.strip("[]").split(",") if t.strip()]
        return IntArrayAttribute([i.value for i in items]) if kind == "ints" else ArrayAttribute(tuple(items))
    if kind == "bool":
        return BoolAttribute(text == "true")
    if kind == "str":
        return StrAttribute(text.strip('"'))
    if kind in ("i32", "i64", "f32", "f64"):
        if text in ("true", "false"):           # a default that C++ converts
            return of_kind(kind, int(text == "true"))
        return of_kind(kind, int(text) if kind[0] == "i" else float(text))
    if kind == "scalar":
        return _scalar(float(text))
    return of_kind(kind, text)


def of_kind(kind: str, value: Any) -> Attribute:
    """A Python value as an attribute of one of Paddle's kinds: exactly what Paddle would store.

    >>> of_kind("f32", 0.1), of_kind("array<i32>", (1, 2)), of_kind("dtype", "Undefined").text(exact=False)
    (f32(0.1), [i32(1), i32(2)], 'Undefined')

    Raises: TypeError, ValueError or OverflowError for a value that the kind does not take.
    """
    if isinstance(value, Attribute):
        value = value.items if isinstance(value, ArrayAttribute) and kind.startswith("array<") else value.value
    if kind.startswith("array<"):
        return ArrayAttribute(tuple(of_kind(kind[6:-1], v) for v in value))
    if kind == "dtype":
        return DataTypeAttribute(None if isinstance(value, str) and value == "Undefined" else value)
    if kind == "scalar":
        return _scalar(value)
    if isinstance(value, DimExpr):              # an open size, which no int can say; a file refuses it
        return DimAttribute(value)
    return PLAIN[kind](value)


def _scalar(value: Any) -> Attribute:
    """Paddle's number of any kind: a double, unless that would lose something."""
    if isinstance(value, DimExpr):
        return DimAttribute(value)
    if isinstance(value, complex):
        return ComplexAttribute(value)
    return Int64Attribute(value) if isinstance(value, int) and int(float(value)) != value else DoubleAttribute(value)


PLAIN: dict[str, Any] = {
    "bool": BoolAttribute, "i32": Int32Attribute, "i64": Int64Attribute, "f32": FloatAttribute, "f64": DoubleAttribute,
    "str": StrAttribute, "ints": IntArrayAttribute, "place": PlaceAttribute}
