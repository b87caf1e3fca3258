"""Reading the text that Paddle prints.

The text does not say of what kind an attribute is; the signature of the operator does, and where there is none the
spelling decides.  What cannot be told, or would be printed in another way, is kept as it is spelled, so that the
program always prints as the text it was read from.
"""

from __future__ import annotations

import re
from typing import Any

from minipd.framework.dim import fresh_symbols
from minipd.ir.attributes import (
    ArrayAttribute,
    Attribute,
    BoolAttribute,
    DataTypeAttribute,
    DoubleAttribute,
    Int64Attribute,
    PlaceAttribute,
    StrAttribute,
)
from minipd.ir.block import Block
from minipd.ir.operation import Operation
from minipd.ir.paddle.raw import RawAttribute, RawType
from minipd.ir.paddle.signatures import of_kind, signature
from minipd.ir.parser import Parser
from minipd.ir.program import Program
from minipd.ir.region import Region
from minipd.ir.types import BY_SPELLING, NULL_TYPE, DenseTensorType, StackType, Type, VectorType
from minipd.ir.value import Value

__all__ = ["PaddleParser"]

#: one attribute, or one item of an array: text in quotes, brackets, parentheses, or what ends at a comma or bracket
ATOM = re.compile(r'"(?:\\.|[^"\\])*"|[^,\[\]{}()"]*\([^()]*\)|[^,\[\]{}()"]+', re.S)
NUMBER = re.compile(r"[-+]?(?:inf|nan|\d+(?:\.\d*)?(?:e[-+]?\d+)?)$")


class PaddleParser(Parser):
    """Paddle's text, read into a program in Paddle's form."""

    def __init__(self, text: str):
        super().__init__(text)
        self.symbols = fresh_symbols(())

    # -------------------------------------------------------------------------------------------- structure
    def program(self) -> Program:
        program = Program()
        program.form = "paddle"
        self.expect("{")
        return self.body(program)

    def another_region(self) -> bool:
        if not self.accept("else"):
            return False
        self.expect("{")
        return True

    def region(self, owner: Operation) -> Block:
        region = Region(owner)
        owner.regions.append(region)
        block = region.add_block()
        if self.accept("^"):
            inputs = iter(owner.operands_source()[1:])
            while True:
                name = self.name()
                source = next(inputs, None)
                if source is None:
                    raise self.error("as many arguments as the while has inputs", name[0], name[1])
                arg = block.add_arg(source.type())
                for key, spelling in self.fields().items():
                    arg.attributes[key] = self.meaning(spelling, "", "")
                self.define(name, arg)
                if not self.accept(","):
                    break
        return block

    def operation(self) -> tuple[Operation, bool]:
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        name = self.string()
        if self.text.startswith(" (cond=", self.pos):
            return self.loop(names, name)
        operands = self.sequence("(", self.use, ")")
        attributes = {k: self.attribute_of(name, k, v) for k, v in self.fields().items()}
        if self.accept(":"):
            self.space()
            start = self.pos
            takes = self.sequence("(", self.type, ")")
            known = [(NULL_TYPE if v is None else v.type()).text(exact=False) for v in operands]
            if [t.text(exact=False) for t in takes] != known:
                raise self.error(f"the operands' types ({', '.join(known)})",
                                 f"({', '.join(t.text(exact=False) for t in takes)})", start)
        self.expect("->")
        gives: list[Type] = []
        while len(gives) < len(names):
            if gives:
                self.expect(",")
            gives.append(self.type())
        op = Operation(name, operands, attributes, gives)
        for given, result in zip(names, op.results(), strict=True):
            self.define(given, result)
        return op, self.accept("{")

    def loop(self, names: list, name: str) -> tuple[Operation, bool]:
        """`(cond=%12, inputs=%10, %7) {`: Paddle prints no types here; the results have those of the inputs."""
        self.expect("(")
        self.expect("cond=")
        operands: list[Value | None] = [self.use()]
        self.expect(",")
        self.expect("inputs=")
        operands += self.items(self.use, ")")
        self.expect(")")
        types = [NULL_TYPE if v is None else v.type() for v in operands[1:]]
        if len(types) != len(names):
            start = names[0][1] if names else None
            raise self.error("as many results as inputs", f"{len(names)} and {len(types)}", start)
        op = Operation(name, operands, {}, types)
        for given, result in zip(names, op.results(), strict=True):
            self.define(given, result)
        self.expect("{")
        return op, True

    # ------------------------------------------------------------------------------------------------- types
    def type(self) -> Type:
        self.space()
        start = self.pos
        if self.accept("<<NULL TYPE>>"):
            return NULL_TYPE
        for end in StackType.ENDS:
            if self.accept(f"cf.{end}"):
                return StackType(end)
        if self.text.startswith("vec[", self.pos):
            self.expect("vec")
            return VectorType(tuple(self.sequence("[", self.type, "]")))
        if self.accept("tensor<"):
            spelling = self.match(r"[-0-9a-z]+", "a shape and a dtype such as 2x3xf32")
            *sizes, dtype = re.split("x", spelling)
            if dtype in BY_SPELLING and all(re.fullmatch(r"-1|\d{1,18}", s) for s in sizes) and self.accept(">"):
                shape = [next(self.symbols) if s == "-1" else int(s) for s in sizes]
                return DenseTensorType(shape, BY_SPELLING[dtype])
            self.pos = start
        return RawType.of(self.match(r"[A-Za-z_][\w.]*(?:<[^<>\n]*>)?", "a type such as tensor<2x3xf32>"))

    # -------------------------------------------------------------------------------------------- attributes
    def fields(self) -> dict[str, str]:
        """`{axis:-1,perm:[1,0]}`: the spelling of each."""
        found: dict[str, str] = {}
        self.expect("{")
        while not self.accept("}"):
            if found:
                self.expect(",")
            name = self.match("[A-Za-z_][A-Za-z0-9_]*", "the name of an attribute")
            self.expect(":")
            start = self.pos
            self.spelling()
            found[name] = self.text[start:self.pos]
        return found

    def spelling(self) -> None:
        """Go on to the end of one attribute."""
        depth = 0
        while True:
            if self.text.startswith("[", self.pos):
                depth += 1
                self.pos += 1
            elif depth and self.text.startswith("]", self.pos):
                depth -= 1
                self.pos += 1
            elif depth and self.text.startswith(",", self.pos):
                self.pos += 1
                continue
            else:
                found = ATOM.match(self.text, self.pos)
                if found is None:
                    raise self.error("an attribute such as 3, true, \"text\" or [1,2]")
                self.pos = found.end()
            if not depth:
                return

    def attribute_of(self, op: str, name: str, spelling: str) -> Attribute:
        """The attribute of an operation, of the kind that the operator's signature has for it."""
        dialect, _, short = op.partition(".")
        known = signature(short) if dialect == "pd_op" else None
        kind = known.attrs[name][0] if known is not None and name in known.attrs else ""
        return self.meaning(spelling, kind, name)

    def meaning(self, spelling: str, kind: str, name: str) -> Attribute:
        try:
            found = of_kind(kind, value_of(spelling, kind)) if kind else guess(spelling)
        except (KeyError, OverflowError, TypeError, ValueError):
            found = RawAttribute(spelling)
        return found if found.text(exact=False) == spelling else RawAttribute(spelling)


def guess(spelling: str) -> Attribute:
    """The attribute of which nothing is known but how it is spelled.

    >>> guess("[true,false]"), guess("Place(cpu)"), guess("1.5"), guess("float32")
    ([true, false], Place(cpu), f64(1.5), dtype(float32))
    """
    if spelling.startswith("["):
        return ArrayAttribute(tuple(map(guess, items(spelling))))
    if spelling.startswith('"'):
        return StrAttribute(value_of(spelling, "str"))
    if spelling in ("true", "false"):
        return BoolAttribute(spelling == "true")
    if re.fullmatch(r"-?\d+", spelling):
        return Int64Attribute(int(spelling))
    if NUMBER.match(spelling):
        return DoubleAttribute(float(spelling))
    if spelling.startswith("Place("):
        return PlaceAttribute(spelling[6:-1])
    return DataTypeAttribute(value_of(spelling, "dtype"))


def value_of(spelling: str, kind: str) -> Any:
    """The Python value that is spelled so, of an attribute of this kind.

    >>> value_of("[2,-1]", "array<i64>"), value_of("Undefined", "dtype"), value_of("inf", "f32")
    ((2, -1), 'Undefined', inf)
    """
    if kind.startswith("array<"):
        return tuple(value_of(item, kind[6:-1]) for item in items(spelling))
    if kind == "ints":
        return tuple(map(int, items(spelling)))
    if kind == "bool":
        return {"true": True, "false": False}[spelling]
    if kind in ("i32", "i64"):
        return int(spelling)
    if kind in ("f32", "f64", "scalar"):
        return complex(*map(float, spelling[1:-1].split(","))) if spelling.startswith("(") else float(spelling)
    if kind == "str":
        if not re.fullmatch(r'"(?:\\.|[^"\\])*"', spelling, re.S):
            raise ValueError(spelling)
        return spelling[1:-1].replace('\\"', '"')
    if kind == "place":
        if not spelling.startswith("Place("):
            raise ValueError(spelling)
        return spelling[6:-1]
    return spelling


def items(spelling: str) -> list[str]:
    """The items of an array.

    >>> items('[[1,2],"a,b",3]'), items("[]")
    (['[1,2]', '"a,b"', '3'], [])
    """
    if not (spelling.startswith("[") and spelling.endswith("]")):
        raise ValueError(spelling)
    found, depth, start = [], 0, 1
    for part in re.finditer(r'"(?:\\.|[^"\\])*"|[\[\](),]', spelling, re.S):
        text, at = part.group(), part.start()
        depth += text in "[(" and len(text) == 1
        if text == "," and depth == 1 or at == len(spelling) - 1:
            found.append(spelling[start:at])
            start = at + 1
        depth -= text in "])" and len(text) == 1
    return found if found != [""] else []
